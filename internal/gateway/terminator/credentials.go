package terminator

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gardener.cloud/gardener/internal/component/gateway"
)

// Credentials are those of one kube-apiserver.
type Credentials struct {
	server, proxy        tls.Certificate
	clientCAs, serverCAs *x509.CertPool
}

// Parse reads the data of a Secret.
func Parse(data map[string][]byte) (*Credentials, error) {
	for _, key := range []string{gateway.KeyCertificate, gateway.KeyPrivateKey, gateway.KeyClientCA, gateway.KeyServerCA, gateway.KeyProxyCertificate, gateway.KeyProxyPrivateKey} {
		if len(data[key]) == 0 {
			return nil, fmt.Errorf("key %q is missing, of %q", key, slices.Sorted(maps.Keys(data)))
		}
	}
	c := &Credentials{clientCAs: x509.NewCertPool(), serverCAs: x509.NewCertPool()}
	var err error
	if c.server, err = tls.X509KeyPair(data[gateway.KeyCertificate], data[gateway.KeyPrivateKey]); err != nil {
		return nil, fmt.Errorf("read %s and %s: %w", gateway.KeyCertificate, gateway.KeyPrivateKey, err)
	}
	if c.proxy, err = tls.X509KeyPair(data[gateway.KeyProxyCertificate], data[gateway.KeyProxyPrivateKey]); err != nil {
		return nil, fmt.Errorf("read %s and %s: %w", gateway.KeyProxyCertificate, gateway.KeyProxyPrivateKey, err)
	}
	if !c.clientCAs.AppendCertsFromPEM(data[gateway.KeyClientCA]) || !c.serverCAs.AppendCertsFromPEM(data[gateway.KeyServerCA]) {
		return nil, errors.New("a CA bundle has no certificates")
	}
	return c, nil
}
