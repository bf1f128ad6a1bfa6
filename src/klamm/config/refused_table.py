"""The settings that promise what Klamm does not do yet, and that would be dangerous to ignore.

A file that sets one of them to anything but its default is refused: a broker that runs without the protection its
owner asked for is worse than one that does not start. A name after `+` is Kafka's, but not one of its own table.
"""

REFUSED_SETTINGS = """
TLS is not implemented yet: remove the ssl settings, and keep the listeners inside a network you trust.
    ssl.allow.dn.changes                                 boolean   false            .             fixed
    ssl.allow.san.changes                                boolean   false            .             fixed
    ssl.cipher.suites                                    list      ""               list?         broker
    ssl.client.auth                                      string    none             one:required,requested,none  broker
    ssl.enabled.protocols                                list      TLSv1.2,TLSv1.3  list?         broker
    ssl.endpoint.identification.algorithm                string    https            .             broker
    ssl.engine.factory.class                             class     -                .             broker
    ssl.key.password                                     password  -                .             broker
    ssl.keymanager.algorithm                             string    SunX509          .             broker
    ssl.keystore.certificate.chain                       password  -                .             broker
    ssl.keystore.key                                     password  -                .             broker
    ssl.keystore.location                                string    -                .             broker
    ssl.keystore.password                                password  -                .             broker
    ssl.keystore.type                                    string    JKS              .             broker
    ssl.principal.mapping.rules                          string    DEFAULT          .             fixed
    ssl.protocol                                         string    TLSv1.3          .             broker
    ssl.provider                                         string    -                .             broker
    ssl.secure.random.implementation                     string    -                .             broker
    ssl.trustmanager.algorithm                           string    PKIX             .             broker
    ssl.truststore.certificates                          password  -                .             broker
    ssl.truststore.location                              string    -                .             broker
    ssl.truststore.password                              password  -                .             broker
    ssl.truststore.type                                  string    JKS              .             broker
SASL is not implemented yet: remove the sasl settings, and keep the listeners inside a network you trust.
    sasl.client.callback.handler.class                   class     -                .             fixed
    sasl.enabled.mechanisms                              list      GSSAPI           list?         broker
    sasl.jaas.config                                     password  -                .             broker
    sasl.kerberos.kinit.cmd                              string    /usr/bin/kinit   .             broker
    sasl.kerberos.min.time.before.relogin                long      60000            .             broker
    sasl.kerberos.principal.to.local.rules               list      DEFAULT          list?         broker
    sasl.kerberos.service.name                           string    -                .             broker
    sasl.kerberos.ticket.renew.jitter                    double    0.05             .             broker
    sasl.kerberos.ticket.renew.window.factor             double    0.8              .             broker
    sasl.login.callback.handler.class                    class     -                .             fixed
    sasl.login.class                                     class     -                .             fixed
    sasl.login.connect.timeout.ms                        int       -                .             fixed
    sasl.login.read.timeout.ms                           int       -                .             fixed
    sasl.login.refresh.buffer.seconds                    short     300              .             broker
    sasl.login.refresh.min.period.seconds                short     60               .             broker
    sasl.login.refresh.window.factor                     double    0.8              .             broker
    sasl.login.refresh.window.jitter                     double    0.05             .             broker
    sasl.login.retry.backoff.max.ms                      long      10000            .             fixed
    sasl.login.retry.backoff.ms                          long      100              .             fixed
    sasl.mechanism.controller.protocol                   string    GSSAPI           .             fixed
    sasl.mechanism.inter.broker.protocol                 string    GSSAPI           .             broker
    sasl.oauthbearer.assertion.algorithm                 string    RS256            anycase:ES256,RS256  fixed
    sasl.oauthbearer.assertion.claim.aud                 string    -                .             fixed
    sasl.oauthbearer.assertion.claim.exp.seconds         int       300              0..86400      fixed
    sasl.oauthbearer.assertion.claim.iss                 string    -                .             fixed
    sasl.oauthbearer.assertion.claim.jti.include         boolean   false            .             fixed
    sasl.oauthbearer.assertion.claim.nbf.seconds         int       60               0..3600       fixed
    sasl.oauthbearer.assertion.claim.sub                 string    -                .             fixed
    sasl.oauthbearer.assertion.file                      string    -                .             fixed
    sasl.oauthbearer.assertion.private.key.file          string    -                .             fixed
    sasl.oauthbearer.assertion.private.key.passphrase    password  -                .             fixed
    sasl.oauthbearer.assertion.template.file             string    -                .             fixed
    sasl.oauthbearer.client.credentials.client.id        string    -                .             fixed
    sasl.oauthbearer.client.credentials.client.secret    password  -                .             fixed
    sasl.oauthbearer.clock.skew.seconds                  int       30               .             fixed
    sasl.oauthbearer.expected.audience                   list      ""               list?         fixed
    sasl.oauthbearer.expected.issuer                     string    -                .             fixed
    sasl.oauthbearer.jwks.endpoint.refresh.ms            long      3600000          .             fixed
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long      10000            .             fixed
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long      100              .             fixed
    sasl.oauthbearer.jwks.endpoint.url                   string    -                .             fixed
    sasl.oauthbearer.jwt.retriever.class                 class   \
        org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever  .  fixed
    sasl.oauthbearer.jwt.validator.class                 class   \
        org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator  .  fixed
    sasl.oauthbearer.scope                               string    -                .             fixed
    sasl.oauthbearer.scope.claim.name                    string    scope            .             fixed
    sasl.oauthbearer.sub.claim.name                      string    sub              .             fixed
    sasl.oauthbearer.token.endpoint.url                  string    -                .             fixed
    sasl.server.callback.handler.class                   class     -                .             fixed
    sasl.server.max.receive.size                         int       524288           .             fixed
    connections.max.reauth.ms                            long      0                .             fixed
Authorization is not implemented yet: everyone who reaches a listener may do everything.
    authorizer.class.name                                string    ""               .             fixed
    principal.builder.class                              class   \
        org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder  .  broker
    +super.users                                         string    -                .             fixed
    +allow.everyone.if.no.acl.found                      boolean   false            .             fixed
Delegation tokens are not implemented yet: remove these settings.
    delegation.token.expiry.check.interval.ms            long      3600000          >=1           fixed
    delegation.token.expiry.time.ms                      long      86400000         >=1           fixed
    delegation.token.max.lifetime.ms                     long      604800000        >=1           fixed
    delegation.token.secret.key                          password  -                .             fixed
    +delegation.token.master.key                         password  -                .             fixed
Controllers do not join the quorum by themselves yet: add them with kafka-metadata-quorum.sh add-controller.
    controller.quorum.auto.join.enable                   boolean   false            .             fixed
Java security providers cannot be loaded here: remove the setting.
    security.providers                                   string    -                .             fixed
Values cannot be fetched by config providers here: write the values themselves.
    config.providers                                     list      ""               list?         cluster
Policies are Java classes, which cannot be loaded here: remove the setting, and check what they forbade in another way.
    create.topic.policy.class.name                       class     -                .             fixed
    alter.config.policy.class.name                       class     -                .             fixed
    client.quota.callback.class                          class     -                .             fixed
Tiered storage is not implemented: records stay on the broker's own disk.
    remote.log.storage.system.enable                     boolean   false            .             fixed
"""
