// Package access requests the client certificate of the gardener-node-agent, and renews it in time.
//
// It reads the bootstrap token and the machine's name, reads and writes the agent's kubeconfig, and writes
// CertificateSigningRequests in the shoot. Source: concepts.txt, Gardener Resource Manager, "Gardener Node Agent".
package access

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

const (
	// lifetime is the requested validity of certificates.
	lifetime = 30 * 24 * time.Hour
	// answerTimeout is how long approval and signing may take. Both are done by controllers that watch.
	answerTimeout = 5 * time.Minute
	// requestTimeout is how long a request to the API server may take.
	requestTimeout = 30 * time.Second
	// retryAfter is how long to wait after a renewal that failed. At least a tenth of the lifetime is left then.
	retryAfter = 10 * time.Minute
)

// pollInterval is how often a CertificateSigningRequest is read: less and less often. Node agents may get requests, but not watch them.
var pollInterval = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.2, Jitter: 0.2, Steps: 1000, Cap: 5 * time.Second}

// Values configure how the certificate is requested, and where it is kept.
type Values struct {
	// Root is the root directory of the machine.
	Root rootfs.Dir
	// APIServer has the address and the CA bundle of the API server.
	APIServer nodeagentconfigv1alpha1.APIServer
	// Kubeconfig is the path of the kubeconfig with the certificate.
	Kubeconfig string
	// Hostname is the name of the machine, unless MachineNameFilePath has another.
	Hostname string
	// Clock has the time for expiration.
	Clock clock.Clock
}

// Ensure requests a certificate and writes the kubeconfig, unless there is one with a valid certificate. It waits for approval.
func Ensure(ctx context.Context, v Values) error {
	log := logr.FromContextOrDiscard(ctx)
	certificate, err := v.certificate()
	switch {
	case err == nil && v.Clock.Now().Before(certificate.NotAfter):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		log.Info("Replacing an invalid kubeconfig", "path", v.Kubeconfig, "reason", err.Error())
	}
	// New machines have a bootstrap token; the other token is of node agents from before there were certificates.
	for _, path := range []string{nodeagentconfigv1alpha1.BootstrapTokenFilePath, nodeagentconfigv1alpha1.TokenFilePath} {
		token, err := v.Root.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		log.Info("Requesting the first certificate", "tokenFile", path)
		return v.obtain(ctx, &rest.Config{
			Host: v.APIServer.Server, BearerToken: string(bytes.TrimSpace(token)),
			TLSClientConfig: rest.TLSClientConfig{CAFile: v.Root.Path(v.APIServer.CAFile)},
		})
	}
	return fmt.Errorf("there is neither a valid certificate in %s nor a token in %s to request one with",
		v.Kubeconfig, nodeagentconfigv1alpha1.BootstrapTokenFilePath)
}

// Keep renews the certificate when most of its lifetime is over, and then calls renewed, once: the process has to restart to use it.
func Keep(ctx context.Context, v Values, renewed func()) error {
	log := logr.FromContextOrDiscard(ctx)
	certificate, err := v.certificate()
	if err != nil {
		return err
	}
	due := renewalTime(certificate, mathrand.Float64()) // spreads load, needs no secrecy
	log.V(1).Info("Scheduling the renewal of the certificate", "at", due)
	for {
		timer := v.Clock.NewTimer(due.Sub(v.Clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
		log.Info("Renewing the certificate", "expires", certificate.NotAfter)
		if err = Renew(ctx, v); err == nil {
			renewed()
			return nil
		}
		log.Error(err, "Could not renew the certificate")
		due = v.Clock.Now().Add(retryAfter)
	}
}

// Renew requests another certificate with the present one, and writes the kubeconfig. The process has to restart to use it.
func Renew(ctx context.Context, v Values) error {
	config, err := clientcmd.BuildConfigFromFlags("", v.Root.Path(v.Kubeconfig))
	if err != nil {
		return err
	}
	return v.obtain(ctx, config)
}

// renewalTime is between 70% and 90% of the lifetime of a certificate, at random (between 0 and 1), so that nodes that were created together
// do not renew together.
func renewalTime(certificate *x509.Certificate, random float64) time.Time {
	lifetime := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotBefore.Add(time.Duration(float64(lifetime) * (0.7 + 0.2*random)))
}

// certificate returns the one in the kubeconfig. The error is fs.ErrNotExist if there is no kubeconfig.
func (v Values) certificate() (*x509.Certificate, error) {
	data, err := v.Root.Read(v.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return nil, fmt.Errorf("read the certificate in the kubeconfig: %w", err)
	}
	return pair.Leaf, nil
}

// MachineName is the name of the machine in the agent's user name.
func MachineName(root rootfs.Dir, hostname string) (string, error) {
	name, err := root.Read(nodeagentconfigv1alpha1.MachineNameFilePath)
	if errors.Is(err, fs.ErrNotExist) {
		return hostname, nil
	}
	return string(bytes.TrimSpace(name)), err
}

// obtain requests a certificate and writes a kubeconfig with it.
func (v Values) obtain(ctx context.Context, config *rest.Config) error {
	machine, err := MachineName(v.Root, v.Hostname)
	if err != nil {
		return err
	}
	config.Timeout = requestTimeout
	requests, err := certificatesclient.NewForConfig(config)
	if err != nil {
		return err
	}
	key, request, err := newRequest(constants.NodeAgentUserNamePrefix + machine)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	csr, err := requests.CertificateSigningRequests().Create(ctx, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create CertificateSigningRequest: %w", err)
	}
	var certificate []byte
	var last error
	err = pollInterval.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		csr, err := requests.CertificateSigningRequests().Get(ctx, csr.Name, metav1.GetOptions{})
		if err != nil {
			last = err
			return false, nil // the next request may succeed
		}
		certificate, last, err = result(csr)
		return len(certificate) > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for the certificate: %w", errors.Join(err, last))
	}
	kubeconfig, err := v.kubeconfig(machine, certificate, key)
	if err != nil {
		return err
	}
	return v.Root.Write(v.Kubeconfig, kubeconfig, 0o600)
}

// result returns the certificate of a request, why there is none yet, or why there will be none.
func result(csr *certificatesv1.CertificateSigningRequest) (certificate []byte, pending, refused error) {
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return nil, nil, fmt.Errorf("CertificateSigningRequest %q is %s (%s): %s", csr.Name, condition.Type, condition.Reason, condition.Message)
		}
	}
	if len(csr.Status.Certificate) == 0 {
		return nil, fmt.Errorf("CertificateSigningRequest %q is not approved and signed yet", csr.Name), nil
	}
	return csr.Status.Certificate, nil, nil
}

func newRequest(user string) (key []byte, csr *certificatesv1.CertificateSigningRequest, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{constants.NodeAgentsGroup}},
	}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-agent-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			ExpirationSeconds: new(int32(lifetime.Seconds())),
		},
	}, nil
}

// kubeconfig contains the certificate, and refers to the file with the CA bundle of the API server, which may change.
func (v Values) kubeconfig(user string, certificate, key []byte) ([]byte, error) {
	const name = "shoot"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: v.APIServer.Server, CertificateAuthority: v.Root.Path(v.APIServer.CAFile)}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	})
}

// KubeletBootstrapKubeconfig renders the kubeconfig with which a kubelet requests its first certificate, by a token, or by the certificate that it has. The kubeconfig that the kubelet
// writes then refers to the same file with the CA bundle of the API server, which may change.
func KubeletBootstrapKubeconfig(server, caFile string, as *clientcmdapi.AuthInfo) ([]byte, error) {
	const name = "kubelet-bootstrap"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthority: caFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: as},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}
