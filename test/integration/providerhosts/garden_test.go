package providerhosts

import (
	"fmt"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/provider/hosts"
	"gardener.cloud/gardener/internal/provider/hosts/hoststest"
	"gardener.cloud/gardener/pkg/extension/contract"
)

// The garden's own DNS records and backups, with what the chart has for the runtime cluster: no definitions of Hosts, and no access to Secrets elsewhere.
func TestProviderHostsOfGarden(t *testing.T) {
	const in = "runtime-extension-provider-hosts"
	c, config := install(t, in, map[string]any{"runtimeCluster": map[string]any{"enabled": "true", "priorityClassName": "gardener-garden-system-200"}})
	o := hosts.NewOptions()
	o.ExtensionClasses, o.Controllers, o.DisableWebhooks = []string{"garden"}, []string{"dnsrecord", "backupbucket", "backupentry"}, []string{"controlplane"}
	run(t, config, in, o)
	server := httptest.NewServer(&hoststest.Store{Objects: map[string][]string{}})
	t.Cleanup(server.Close)
	create(t, c,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "store"}, Data: map[string][]byte{
			"endpoint": []byte(server.URL), "accessKeyID": []byte("id"), "secretAccessKey": []byte("key"),
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "dns"}, Data: map[string][]byte{
			"Server": []byte(hoststest.NameServer(t, hoststest.Address(t))), "Zone": []byte("example.org"), "TSIGKeyName": []byte("test"), "TSIGSecret": []byte(hoststest.TSIG),
		}})
	number := 0
	name := func() string {
		number++
		return fmt.Sprintf("n%d", number)
	}
	of := func(kind string) extensionsv1alpha1.DefaultSpec {
		return extensionsv1alpha1.DefaultSpec{Type: kind, Class: new(extensionsv1alpha1.ExtensionClassGarden)}
	}
	store := corev1.SecretReference{Namespace: "garden", Name: "store"}
	t.Run("DNSRecord", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				m := metav1.ObjectMeta{Namespace: "garden", Name: name()}
				return &extensionsv1alpha1.DNSRecord{ObjectMeta: m, Spec: extensionsv1alpha1.DNSRecordSpec{
					DefaultSpec: of("rfc2136"), SecretRef: corev1.SecretReference{Namespace: "garden", Name: "dns"}, Name: m.Name + ".example.org", RecordType: "A", Values: []string{"10.0.0.1"},
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.DNSRecord).Spec.Class = nil },
		})
	})
	t.Run("BackupBucket", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.BackupBucket{
					ObjectMeta: metav1.ObjectMeta{Name: name()}, Spec: extensionsv1alpha1.BackupBucketSpec{DefaultSpec: of("S3"), Region: "r", SecretRef: store},
				}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.BackupBucket).Spec.Class = nil },
		})
	})
	t.Run("BackupEntry", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "garden--" + name()}, Spec: extensionsv1alpha1.BackupEntrySpec{
					DefaultSpec: of("S3"), Region: "r", BucketName: "b", SecretRef: store,
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.BackupEntry).Spec.Class = nil },
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				access := &corev1.Secret{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "etcd-backup"}, access); err != nil || string(access.Data["endpoint"]) != server.URL {
					t.Errorf("access: %v", err)
				}
			},
		})
	})
}
