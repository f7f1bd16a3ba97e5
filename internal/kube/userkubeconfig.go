package kube

import (
	"errors"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gardener.cloud/gardener/internal/validation/destination"
	"gardener.cloud/gardener/internal/validation/kubeconfig"
)

// handshakeTimeout is the end of a TLS handshake with a server of a user, and how long a connection to it is kept without requests.
const handshakeTimeout = 30 * time.Second

// ConfigOfUser returns the configuration of a kubeconfig that a user has written. It has to contain all that it uses: it would run programs of this
// process, or read its files. Nor may its server be one that this process alone reaches: blocked, such as destination.Host, returns why not to connect
// to a host, or "". Errors do not quote it.
func ConfigOfUser(data []byte, blocked func(host string) string) (*rest.Config, error) {
	checked, errs := kubeconfig.ClientOf(data, nil, blocked)
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(checked)
	if err != nil {
		return nil, errors.New("kubeconfig: it has no valid current context")
	}
	return config, nil
}

// HTTPClientOfUser returns a client for such a configuration. It does not connect to a blocked address either if the name of the server resolves to it,
// and follows no redirects. Its transport is not one of those that client-go keeps forever.
func HTTPClientOfUser(config *rest.Config, blocked func(host string) string) (*http.Client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPWrappersForConfig(config, &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: tls, DialContext: destination.Dialer(blocked).DialContext,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: handshakeTimeout, ForceAttemptHTTP2: true,
	})
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: transport, Timeout: config.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
