package tunnel

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// credentials are the certificate of this process, and the CAs that the certificates of the other side are verified with. All connections
// of the tunnel use mutual TLS.
type credentials struct {
	certificate tls.Certificate
	cas         *x509.CertPool
}

// loadCredentials reads tls.crt and tls.key from a directory, and a CA bundle.
func loadCredentials(certificateDirectory, caFile string) (credentials, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(certificateDirectory, "tls.crt"), filepath.Join(certificateDirectory, "tls.key"))
	if err != nil {
		return credentials{}, fmt.Errorf("read certificate: %w", err)
	}
	bundle, err := os.ReadFile(caFile)
	if err != nil {
		return credentials{}, fmt.Errorf("read CA bundle: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return credentials{}, fmt.Errorf("read CA bundle: there is no certificate in %q", caFile)
	}
	return credentials{pair, pool}, nil
}

// forTunnelServer is the configuration with which the server accepts agents and proxies.
func (c credentials) forTunnelServer() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{c.certificate}, ClientCAs: c.cas, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
}

// forHTTPProxy is the configuration with which the server accepts requests of the kube-apiserver.
func (c credentials) forHTTPProxy() *tls.Config {
	config := c.forTunnelServer()
	config.MinVersion = tls.VersionTLS12
	config.NextProtos = []string{"http/1.1"} // CONNECT takes over the whole connection, so HTTP/2 is not offered
	return config
}

// forClient is the configuration with which agents and proxies connect to a server.
func (c credentials) forClient(serverName string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.certificate}, RootCAs: c.cas, ServerName: serverName, MinVersion: tls.VersionTLS13}
}

// commonName returns the common name of the client certificate of a connection.
func commonName(conn *tls.Conn) string {
	if certificates := conn.ConnectionState().PeerCertificates; len(certificates) > 0 {
		return certificates[0].Subject.CommonName
	}
	return ""
}
