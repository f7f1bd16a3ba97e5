package attack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/test/env"
)

// inEtcd is where etcd has the objects that are created with this text in them.
const inEtcd = "cHJpdmF0ZQ-of-all-tenants"

// A copy of the disk or of a backup of the garden's etcd must not have the credentials of all tenants. The garden starts with data in plain
// text, as those of before had it; then it encrypts, and its key is rotated.
func TestCredentialsOfTheGardenAtRest(t *testing.T) {
	before := controller.EncryptionConfigFileChangePollDuration
	controller.EncryptionConfigFileChangePollDuration = 100 * time.Millisecond
	t.Cleanup(func() { controller.EncryptionConfigFileChangePollDuration = before })

	dir := t.TempDir()
	config := filepath.Join(dir, "encryption.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"+
		"- resources: [internalsecrets.core.gardener.cloud]\n  providers: [{identity: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secretsKey := encryption.NewState(time.Now())
	kube, err := encryption.Configuration(encryption.Values{Keys: secretsKey.Keys, Resources: []string{"secrets"}})
	if err != nil {
		t.Fatal(err)
	}
	kubeConfig := filepath.Join(dir, "kube.yaml")
	if err := os.WriteFile(kubeConfig, kube, 0o600); err != nil {
		t.Fatal(err)
	}
	e := env.Start(t, env.Lenient(), env.KubeAPIServerFlags("--encryption-provider-config="+kubeConfig),
		env.Flags("--encryption-provider-config="+config, "--encryption-provider-config-automatic-reload=true"))
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{e.EtcdURL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Close() })

	withText := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Annotations: map[string]string{"values": inEtcd}}
	}
	text := runtime.RawExtension{Raw: []byte(`{"key":"` + inEtcd + `"}`)}
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seed-backup"}, StringData: map[string]string{"key": inEtcd}},
		&corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "ca"}, StringData: map[string]string{"key": inEtcd}},
		&corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "state"}, Spec: corev1beta1.ShootStateSpec{
			Gardener: []corev1beta1.GardenerResourceData{{Name: "ca", Type: "secret", Data: text}},
		}},
		&gardencorev1.ControllerDeployment{ObjectMeta: withText("provider"), Helm: &gardencorev1.HelmControllerDeployment{RawChart: []byte("chart")}},
		&corev1beta1.ControllerRegistration{ObjectMeta: withText("provider")},
	} {
		if err := e.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	stored := func() map[string]string { return storedWith(t, etcd, "/registry-gardener/core.gardener.cloud/") }
	for resource, value := range stored() {
		if !strings.Contains(value, inEtcd) {
			t.Errorf("the test proves nothing: %s was not in plain text before: %q", resource, value)
		}
	}
	if value := storedWith(t, etcd, "/registry/secrets/")["secrets"]; !strings.HasPrefix(value, "k8s:enc:aescbc:v1:"+secretsKey.Keys[0].Name+":") {
		t.Errorf("a Secret is stored as %q", value)
	}

	server := &reloadedServer{Env: e, file: config}
	if err := encryption.Reconcile(t.Context(), server, encryption.NewState(time.Now())); err != nil {
		t.Fatal(err)
	}
	first := server.state.Keys[0].Name
	checkEncrypted(t, stored(), first)

	if err := encryption.Reconcile(t.Context(), server, server.state.Rotate(time.Now())); err != nil {
		t.Fatal(err)
	}
	second := server.state.Keys[0].Name
	if second == first || len(server.state.Keys) != 1 {
		t.Errorf("after the rotation there are the keys %v, before it was %s", server.state.Keys, first)
	}
	checkEncrypted(t, stored(), second)
	if read := (&corev1beta1.InternalSecret{}); e.Client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "ca"}, read) != nil ||
		string(read.Data["key"]) != inEtcd {
		t.Errorf("after the rotation, the InternalSecret reads %q", read.Data)
	}
}

// checkEncrypted checks that each resource is stored encrypted with a key.
func checkEncrypted(t *testing.T, stored map[string]string, key string) {
	t.Helper()
	for _, resource := range gardenerapiserver.EncryptedResources() {
		resource, _, _ = strings.Cut(resource, ".")
		value := stored[resource]
		if !strings.HasPrefix(value, "k8s:enc:aescbc:v1:"+key+":") || strings.Contains(value, inEtcd) {
			t.Errorf("%s are stored as %q", resource, value)
		}
	}
}

// storedWith returns the raw content of etcd below a prefix, by resource. Each resource has one object.
func storedWith(t *testing.T, etcd *clientv3.Client, prefix string) map[string]string {
	t.Helper()
	response, err := etcd.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, pair := range response.Kvs {
		parts := strings.Split(strings.TrimPrefix(string(pair.Key), "/"), "/")
		found[parts[slices.IndexFunc(parts, func(part string) bool { return !strings.Contains(part, ".") && !strings.HasPrefix(part, "registry") })]] = string(pair.Value)
	}
	return found
}

// reloadedServer is a gardener-apiserver that reads its encryption configuration again when the file changes.
type reloadedServer struct {
	*env.Env
	file  string
	hash  string
	state encryption.State
}

func (s *reloadedServer) Save(_ context.Context, state encryption.State) error {
	s.state = state
	return nil
}

func (s *reloadedServer) Use(_ context.Context, keys []encryption.Key) error {
	config, err := encryption.Configuration(encryption.Values{Keys: keys, Resources: gardenerapiserver.EncryptedResources()})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(config)
	s.hash = "sha256:" + hex.EncodeToString(sum[:])
	temp := s.file + ".new"
	if err := os.WriteFile(temp, config, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, s.file)
}

func (s *reloadedServer) AwaitUsed(ctx context.Context) error {
	config := rest.CopyConfig(s.Direct)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		response, err := httpClient.Get(config.Host + "/metrics") //nolint:noctx // it ends with the server
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		var body bytes.Buffer
		if _, err := body.ReadFrom(response.Body); err != nil {
			return false, err
		}
		return strings.Contains(body.String(), fmt.Sprintf(`hash="%s"`, s.hash)), nil
	})
}

func (s *reloadedServer) Rewrite(ctx context.Context) error {
	for _, resource := range gardenerapiserver.EncryptedResources() {
		if err := encryption.Rewrite(ctx, s.Client, schema.ParseGroupResource(resource)); err != nil {
			return err
		}
	}
	return nil
}
