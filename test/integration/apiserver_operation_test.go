package integration

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/env"
)

const tokenIssuer = "https://discovery.example.com/garden/workload-identity/issuer"

var sortedStrings = cmpopts.SortSlices(strings.Compare)

// files are what gardener-apiserver reads at its start, and the log that it writes.
type files struct {
	encryption, auditPolicy, auditLog, tokenKeyFile string
	tokenKey                                        *ecdsa.PrivateKey
}

func (f files) flags() []string {
	return []string{
		"--encryption-provider-config=" + f.encryption, "--audit-policy-file=" + f.auditPolicy, "--audit-log-path=" + f.auditLog,
		"--workload-identity-token-issuer=" + tokenIssuer, "--workload-identity-signing-key-file=" + f.tokenKeyFile,
	}
}

func writeFiles(t *testing.T) files {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return files{
		encryption: write("encryption.yaml", fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [internalsecrets.core.gardener.cloud]
  providers: [{aesgcm: {keys: [{name: one, secret: %s}]}}, {identity: {}}]
`, base64.StdEncoding.EncodeToString(make([]byte, 32)))),
		auditPolicy:  write("audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"),
		auditLog:     filepath.Join(dir, "audit.log"),
		tokenKeyFile: write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))),
		tokenKey:     key,
	}
}

func testOperation(t *testing.T, e *env.Env, files files) {
	t.Run("the garden has namespaces for gardenlets, and an identity", func(t *testing.T) {
		for _, name := range []string{"gardener-system-seed-lease", "gardener-system-shoot-issuer"} {
			if err := e.Client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}); err != nil {
				t.Error(err)
			}
		}
		identity := &corev1.ConfigMap{}
		if err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "cluster-identity"}, identity); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"cluster-identity": "garden-test", "origin": "gardener-apiserver"}
		if diff := cmp.Diff(want, identity.Data); diff != "" || identity.Immutable == nil || !*identity.Immutable {
			t.Errorf("identity is immutable: %v, and (-want +got):\n%s", identity.Immutable, diff)
		}
	})

	t.Run("secrets are encrypted in etcd", func(t *testing.T) {
		create(t, e, &corev1beta1.InternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: "hidden"}, Data: map[string][]byte{"key": []byte("plain text")},
		})
		etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{e.EtcdURL}})
		if err != nil {
			t.Fatal(err)
		}
		defer etcd.Close() //nolint:errcheck // all was read
		stored, err := etcd.Get(t.Context(), "/registry-gardener/core.gardener.cloud/internalsecrets/garden-dev/hidden")
		if err != nil || len(stored.Kvs) != 1 {
			t.Fatalf("etcd has %v: %v", stored, err)
		}
		value := string(stored.Kvs[0].Value)
		if !strings.HasPrefix(value, "k8s:enc:aesgcm:v1:one:") || strings.Contains(value, "plain text") || strings.Contains(value, "hidden") {
			t.Errorf("etcd has %q", value)
		}
		stored, err = etcd.Get(t.Context(), "/registry-gardener/core.gardener.cloud/shoots/garden-dev/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil || len(stored.Kvs) == 0 {
			t.Errorf("etcd has no shoots where they are expected: %v", err)
		}
	})

	t.Run("requests are in the audit log, without their content", func(t *testing.T) {
		log, err := os.ReadFile(files.auditLog)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`"subresource":"adminkubeconfig"`, `"subresource":"token"`, `"auditID"`} {
			if !strings.Contains(string(log), part) {
				t.Errorf("audit log does not have %s", part)
			}
		}
		for _, secret := range []string{"PRIVATE KEY", "client-key-data"} {
			if strings.Contains(string(log), secret) {
				t.Errorf("audit log has %q", secret)
			}
		}
	})

	t.Run("requests are served by priority", func(t *testing.T) {
		httpClient, err := rest.HTTPClientFor(e.Direct)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.Direct.Host+"/apis/core.gardener.cloud/v1beta1/shoots", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := httpClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		for _, header := range []string{"X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"} {
			if response.Header.Get(header) == "" {
				t.Errorf("answer has no header %s", header)
			}
		}
	})
}

// A watch during a shutdown of the server sees the end of the stream, not a broken connection, and earlier requests get an
// answer.
func testShutdown(t *testing.T, e *env.Env) {
	httpClient, err := rest.HTTPClientFor(e.Direct)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.Direct.Host+"/apis/core.gardener.cloud/v1beta1/shoots?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if first := (struct{ Type string }{}); json.Unmarshal(line, &first) != nil || first.Type != "ADDED" {
		t.Errorf("watch begins with %s", line)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- e.Stop() }()
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Errorf("watch ends with %v, want its end", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}
