package etcd

import (
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
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// TestConfigurationRuns runs etcd and etcd-backup-restore with the rendered configuration, including TLS. Only paths, ports and
// host names are those of this machine.
func TestConfigurationRuns(t *testing.T) {
	binary := env.Program(t, "etcd", "etcd")
	etcd := mainEtcd()
	var free []int32
	for _, port := range ports.Free(t, 4) {
		free = append(free, int32(port)) //nolint:gosec // ports are small
	}
	etcd.Spec.Etcd.ClientPort, etcd.Spec.Etcd.ServerPort, etcd.Spec.Etcd.WrapperPort, etcd.Spec.Backup.Port = &free[0], &free[1], &free[2], &free[3]
	etcd.Spec.Backup.LeaderElection = nil
	etcd.Spec.Backup.Store.Provider = new(druidv1alpha1.StorageProvider("local"))
	rendered, err := objects(renderValues{Etcd: etcd, Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, object := range rendered {
		if configMap, ok := object.(*corev1.ConfigMap); ok {
			text = configMap.Data[configFile]
		}
	}
	dir := t.TempDir()
	text = strings.NewReplacer(
		"/var/etcd/", dir+"/", "{member}.etcd-main-peer.shoot--dev--crazy.svc", "127.0.0.1", "etcd-main-client.shoot--dev--crazy.svc", "127.0.0.1", "0.0.0.0", "127.0.0.1",
	).Replace(text)
	config, err := backuprestore.Config.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	config.Leases = nil // there is no kube-apiserver
	caPool := writeCertificates(t, filepath.Join(dir, "ssl"))

	ctx, cancel := context.WithTimeout(logr.NewContext(t.Context(), testr.New(t)), 90*time.Second)
	defer cancel()
	if err := backuprestore.Initialize(ctx, config, "etcd-main-0"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, binary, "--config-file="+config.Etcd.ConfigFile)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- backuprestore.Serve(serving, config, "etcd-main-0") }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("server ended: %v", err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()

	certificate, err := tls.LoadX509KeyPair(config.Server.ClientTLS.CertFile, config.Server.ClientTLS.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: caPool}}}
	authenticated := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: caPool, Certificates: []tls.Certificate{certificate}}}}
	await := func(c *http.Client, url string, want int) {
		t.Helper()
		var last error
		if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return false, err
			}
			response, err := c.Do(request)
			if last = err; err != nil {
				return false, nil
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			last = errors.Join(err, fmt.Errorf("%s: %s", response.Status, body))
			return response.StatusCode == want, nil
		}); err != nil {
			t.Fatalf("%s does not respond with %d: %v", url, want, last)
		}
	}
	await(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/readyz", free[2]), http.StatusOK)
	backup := fmt.Sprintf("https://127.0.0.1:%d", free[3])
	await(anonymous, backup+"/healthz", http.StatusOK)
	await(anonymous, backup+"/metrics", http.StatusOK)
	await(anonymous, backup+"/snapshot/full?final=true", http.StatusForbidden)
	await(authenticated, backup+"/snapshot/full?final=true", http.StatusOK)
	await(authenticated, backup+"/snapshot/delta", http.StatusOK)
	await(authenticated, backup+"/snapshot/latest", http.StatusOK)
	await(authenticated, backup+"/config", http.StatusOK)
}

// writeCertificates writes a CA certificate, and a server and a client certificate for each purpose.
func writeCertificates(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind, file string, content []byte) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, purpose := range []string{"etcd", "peer", "backup"} {
		write("CERTIFICATE", filepath.Join(dir, purpose, "ca", "bundle.crt"), caDER)
		for _, side := range []string{"server", "client"} {
			write("CERTIFICATE", filepath.Join(dir, purpose, side, "tls.crt"), der)
			write("EC PRIVATE KEY", filepath.Join(dir, purpose, side, "tls.key"), keyDER)
		}
	}
	parsed, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}
