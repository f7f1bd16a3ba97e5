package plant

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/destination"
)

func TestConditions(t *testing.T) {
	const healthy = "True HealthzRequestSucceeded: API server /healthz endpoint responded with success status code."
	for name, tc := range map[string]struct {
		observed         observed
		available, every string
	}{
		"healthy":                      {observed{nodes: nodes{total: 2}}, healthy, "True EveryNodeReady: All nodes are ready."},
		"without nodes":                {observed{}, healthy, "True EveryNodeReady: The cluster has no nodes."},
		"the version is not important": {observed{versionError: errMalformed, nodes: nodes{total: 2}}, healthy, "True EveryNodeReady: All nodes are ready."},
		"without a kubeconfig": {
			observed{kubeconfigProblem: `Secret "a" does not exist.`},
			`Unknown KubeconfigUnusable: Secret "a" does not exist.`, `Unknown KubeconfigUnusable: Secret "a" does not exist.`,
		},
		"the API server is down": {
			observed{healthzError: &statusError{503}},
			"False HealthzRequestFailed: Request to /healthz of the API server: the API server answers with status 503 Service Unavailable.",
			"Unknown APIServerDown: The state of nodes is unknown, as the API server is not available.",
		},
		"nodes may not be listed": {
			observed{nodesError: &statusError{403}},
			healthy,
			"Unknown NodesUnknown: Request for the nodes: the API server answers with status 403 Forbidden.",
		},
		"nodes that are not ready": {
			observed{nodes: nodes{total: 3, unready: 2, unreadyNames: []string{"a", "b"}}},
			healthy,
			`False NodesUnhealthy: 2 of 3 nodes are not ready: "a", "b".`,
		},
		"many nodes that are not ready": {
			observed{nodes: nodes{total: 9, unready: 7, unreadyNames: []string{"a", "b", "c", "d", "e"}}},
			healthy,
			`False NodesUnhealthy: 7 of 9 nodes are not ready: "a", "b", "c", "d", "e" and 2 more.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range conditions(&tc.observed) {
				got = append(got, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
			}
			if diff := cmp.Diff([]string{"APIServerAvailable " + tc.available, "EveryNodeReady " + tc.every}, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// What a server answers, and the addresses of names, are not in messages.
func TestExplain(t *testing.T) {
	request := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://secret.example.com/healthz", Err: err}
	}
	for want, err := range map[string]error{
		"the API server answers with status 401 Unauthorized": &statusError{401},
		"the destination must not be x":                       request(&net.OpError{Op: "dial", Err: &destination.BlockedError{Reason: "must not be x"}}),
		kube.ErrRedirected.Error():                            request(kube.ErrRedirected),
		kube.ErrTooLarge.Error():                              errors.Join(errMalformed, fmt.Errorf("%w: more than 10 bytes", kube.ErrTooLarge)),
		"there are too many nodes":                            errors.Join(errMalformed, errTooManyNodes),
		"the API server does not respond within 10s":          errors.Join(errMalformed, context.DeadlineExceeded),
		"the certificate of the API server is not one of the CA in the kubeconfig, is for another name, or has expired": request(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
		"the name of the API server cannot be resolved":                                                                 request(&net.OpError{Op: "dial", Err: &net.DNSError{Name: "secret.example.com", Err: "no such host"}}),
		"the connection is refused": request(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
		"the response is malformed": errors.Join(errMalformed, errors.New("invalid character 's'")),
		"the connection fails":      request(errors.New("secret")),
	} {
		if got := explain(err); got != want {
			t.Errorf("explain(%v) = %q, want %q", err, got, want)
		}
	}
}

func TestClusterInfo(t *testing.T) {
	info := func(typ, region, version string) *corev1beta1.ClusterInfo {
		return &corev1beta1.ClusterInfo{
			Cloud: corev1beta1.CloudInfo{Type: typ, Region: region}, Kubernetes: corev1beta1.KubernetesInfo{Version: version},
		}
	}
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		before   *corev1beta1.ClusterInfo
		observed observed
		want     *corev1beta1.ClusterInfo
	}{
		"all is known": {
			before: info("x", "y", "v1.0.0"), observed: observed{version: "v1.36.1+k3s1", nodes: nodes{providerID: "aws:///eu-west-1a/i-0123", region: "eu-west-1"}},
			want: info("aws", "eu-west-1", "v1.36.1+k3s1"),
		},
		"the provider of Google is named as its extension": {observed: observed{version: "v1.36.1", nodes: nodes{providerID: "gce://project/zone/a"}}, want: info("gcp", "", "v1.36.1")},
		"nodes without a provider":                         {before: info("x", "y", "v1.0.0"), observed: observed{version: "v1.36.1"}, want: info("", "", "v1.36.1")},
		"a provider ID without a scheme":                   {observed: observed{version: "v1.36.1", nodes: nodes{providerID: "cn-hangzhou.i-1"}}, want: info("", "", "v1.36.1")},
		"the nodes are unknown": {
			before: info("aws", "eu-west-1", "v1.36.1"), observed: observed{version: "v1.36.2", nodesError: failed, nodes: nodes{region: "half"}},
			want: info("aws", "eu-west-1", "v1.36.2"),
		},
		"the version is unknown": {before: info("aws", "a", "v1.36.1"), observed: observed{versionError: failed, nodes: nodes{region: "b"}}, want: info("", "b", "v1.36.1")},
		"nothing is known":       {observed: observed{versionError: failed, nodesError: failed}},
		"the API server is down": {before: info("aws", "a", "v1.36.1"), observed: observed{healthzError: failed}, want: info("aws", "a", "v1.36.1")},
		"there is no kubeconfig": {before: info("aws", "a", "v1.36.1"), observed: observed{kubeconfigProblem: "none"}, want: info("aws", "a", "v1.36.1")},
		"what is none of these": {
			observed: observed{version: "\x1b[31m", nodes: nodes{providerID: "\x1b[31m://", region: "\x1b[31m"}}, want: info("", "", ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clusterInfo(tc.before, &tc.observed)); diff != "" {
				t.Errorf("clusterInfo() (-want +got):\n%s", diff)
			}
		})
	}
}
