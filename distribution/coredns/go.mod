module gardener.cloud/gardener/distribution/coredns

go 1.26.0

require (
	github.com/coredns/caddy v1.1.1
	github.com/coredns/coredns v1.15.0
)

require (
	github.com/apparentlymart/go-cidr v1.1.1 // indirect
	github.com/aws/aws-sdk-go-v2 v1.47.1 // indirect
	github.com/aws/aws-sdk-go-v2/config v1.33.7 // indirect
	github.com/aws/aws-sdk-go-v2/credentials v1.20.7 // indirect
	github.com/aws/aws-sdk-go-v2/feature/ec2/imds v1.20.1 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.4 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.4 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.4 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.19 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.4 // indirect
	github.com/aws/aws-sdk-go-v2/service/secretsmanager v1.50.2 // indirect
	github.com/aws/aws-sdk-go-v2/service/signin v1.10.2 // indirect
	github.com/aws/aws-sdk-go-v2/service/sso v1.38.2 // indirect
	github.com/aws/aws-sdk-go-v2/service/ssooidc v1.43.2 // indirect
	github.com/aws/aws-sdk-go-v2/service/sts v1.51.2 // indirect
	github.com/aws/smithy-go v1.28.1 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/caddyserver/certmagic v0.25.6 // indirect
	github.com/caddyserver/zerossl v0.1.6 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/coreos/go-systemd/v22 v22.7.0 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/dnstap/golang-dnstap v0.4.0 // indirect
	github.com/emicklei/go-restful/v3 v3.13.0 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	github.com/farsightsec/golang-framestream v0.3.0 // indirect
	github.com/flynn/go-shlex v0.0.0-20150515145356-3f9db97f8568 // indirect
	github.com/fxamacker/cbor/v2 v2.9.0 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-openapi/jsonpointer v0.21.0 // indirect
	github.com/go-openapi/jsonreference v0.20.2 // indirect
	github.com/go-openapi/swag v0.23.0 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/google/gnostic-models v0.7.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/grpc-ecosystem/grpc-opentracing v0.0.0-20180507213350-8e809c8a8645 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/infobloxopen/go-trees v0.0.0-20200715205103-96a057b8dfb9 // indirect
	github.com/josharian/intern v1.0.0 // indirect
	github.com/jpillora/backoff v1.0.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/libdns/libdns v1.1.1 // indirect
	github.com/mailru/easyjson v0.7.7 // indirect
	github.com/mdlayher/socket v0.6.0 // indirect
	github.com/mdlayher/vsock v1.3.0 // indirect
	github.com/mholt/acmez/v3 v3.1.7 // indirect
	github.com/miekg/dns v1.1.73 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/mwitkow/go-conntrack v0.0.0-20190716064945-2f068394615f // indirect
	github.com/opentracing/opentracing-go v1.2.0 // indirect
	github.com/pires/go-proxyproto v0.15.0 // indirect
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2 // indirect
	github.com/prometheus/client_golang v1.23.2 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.67.5 // indirect
	github.com/prometheus/exporter-toolkit v0.20.0 // indirect
	github.com/prometheus/procfs v0.19.2 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	github.com/quic-go/quic-go v0.64.1 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/zeebo/blake3 v0.2.4 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.uber.org/automaxprocs v1.6.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.27.1 // indirect
	go.uber.org/zap/exp v0.3.0 // indirect
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/crypto v0.47.0 // indirect
	golang.org/x/net v0.49.0 // indirect
	golang.org/x/oauth2 v0.34.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
	golang.org/x/term v0.39.0 // indirect
	golang.org/x/text v0.33.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260128011058-8636f8732409 // indirect
	google.golang.org/grpc v1.79.3 // indirect
	google.golang.org/protobuf v1.36.12-0.20260120151049-f2248ac996af // indirect
	gopkg.in/evanphx/json-patch.v4 v4.13.0 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
	k8s.io/api v0.36.3 // indirect
	k8s.io/apimachinery v0.36.3 // indirect
	k8s.io/client-go v0.36.3 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
	k8s.io/kube-openapi v0.0.0-20260317180543-43fb72c5454a // indirect
	k8s.io/utils v0.0.0-20260210185600-b8788abfbbc2 // indirect
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730 // indirect
	sigs.k8s.io/mcs-api v0.5.2 // indirect
	sigs.k8s.io/randfill v1.0.0 // indirect
	sigs.k8s.io/structured-merge-diff/v6 v6.3.3 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

exclude github.com/coredns/caddy v1.1.4

exclude github.com/fxamacker/cbor/v2 v2.9.1

exclude github.com/go-logr/logr v1.4.4

exclude github.com/go-openapi/jsonpointer v1.0.0

exclude github.com/go-openapi/jsonreference v1.0.0

exclude github.com/go-openapi/swag v0.27.1

exclude github.com/grpc-ecosystem/grpc-gateway/v2 v2.29.0

exclude github.com/prometheus/client_golang v1.24.1

exclude github.com/prometheus/client_model v0.6.3

exclude (
	github.com/prometheus/common v0.70.1
	github.com/prometheus/common v0.72.0
)

exclude (
	github.com/prometheus/procfs v0.21.0
	github.com/prometheus/procfs v0.21.1
)

exclude github.com/spf13/pflag v1.0.10

exclude go.etcd.io/etcd/api/v3 v3.7.2

exclude go.etcd.io/etcd/client/pkg/v3 v3.7.2

exclude go.etcd.io/etcd/client/v3 v3.7.2

exclude go.uber.org/zap v1.28.0

exclude go.yaml.in/yaml/v2 v2.4.4

exclude go.yaml.in/yaml/v3 v3.0.5

exclude (
	golang.org/x/crypto v0.54.0
	golang.org/x/crypto v0.55.0
	golang.org/x/crypto v0.57.0
)

exclude (
	golang.org/x/net v0.52.0
	golang.org/x/net v0.55.0
	golang.org/x/net v0.56.0
	golang.org/x/net v0.57.0
	golang.org/x/net v0.58.0
	golang.org/x/net v0.59.0
	golang.org/x/net v0.60.0
)

exclude (
	golang.org/x/oauth2 v0.36.0
	golang.org/x/oauth2 v0.37.0
)

exclude (
	golang.org/x/sync v0.20.0
	golang.org/x/sync v0.21.0
	golang.org/x/sync v0.22.0
	golang.org/x/sync v0.23.0
)

exclude (
	golang.org/x/sys v0.41.0
	golang.org/x/sys v0.42.0
	golang.org/x/sys v0.45.0
	golang.org/x/sys v0.46.0
	golang.org/x/sys v0.47.0
	golang.org/x/sys v0.48.0
	golang.org/x/sys v0.49.0
)

exclude (
	golang.org/x/term v0.45.0
	golang.org/x/term v0.46.0
)

exclude (
	golang.org/x/text v0.36.0
	golang.org/x/text v0.37.0
	golang.org/x/text v0.40.0
	golang.org/x/text v0.41.0
	golang.org/x/text v0.42.0
)

exclude (
	golang.org/x/time v0.15.0
	golang.org/x/time v0.16.0
)

exclude (
	google.golang.org/genproto/googleapis/api v0.0.0-20260414002931-afd174a4e478
	google.golang.org/genproto/googleapis/api v0.0.0-20260526163538-3dc84a4a5aaa
	google.golang.org/genproto/googleapis/api v0.0.0-20260706201446-f0a921348800
	google.golang.org/genproto/googleapis/api v0.0.0-20260715232425-e75dac1f907d
)

exclude (
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260706201446-f0a921348800
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc
)

exclude (
	google.golang.org/grpc v1.80.0
	google.golang.org/grpc v1.83.2
	google.golang.org/grpc v1.84.0
)

exclude google.golang.org/protobuf v1.36.12

exclude k8s.io/api v0.37.1

exclude k8s.io/apimachinery v0.37.1

exclude k8s.io/client-go v0.37.1

exclude k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad

exclude k8s.io/utils v0.0.0-20260626114624-be93311217bd

exclude (
	sigs.k8s.io/structured-merge-diff/v6 v6.4.1
	sigs.k8s.io/structured-merge-diff/v6 v6.4.2
)
