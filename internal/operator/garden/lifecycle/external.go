package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	operatorextension "gardener.cloud/gardener/internal/operator/extension"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/dns"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/pkg/flow"
)

// origin is a label of what the operator has created, and the value of it.
const origin, operator = "origin", "gardener-operator"

// class is that of resources of extensions for the garden itself.
const class = extensionsv1alpha1.ExtensionClassGarden

// awaitExtension returns a task that writes a resource of an extension and waits for it. It is retried within the run also while the API server does not
// reach the webhook that validates these resources: that was deployed a moment ago, by the flow before, and kube-proxy may not know its pod yet.
func awaitExtension(timeout time.Duration, id, title string, run func(context.Context) error, after ...string) flow.Task {
	task := flow.Await(timeout, id, title, run, after...)
	away := task.RetryIf
	task.Retry = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 5, Jitter: 0.1}
	task.RetryIf = func(err error) bool { return away(err) || kube.WebhookAway(err) }
	return task
}

// record is a name that leads to the gateway.
type record struct {
	host     string
	provider *operatorv1alpha1.DNSProvider
}

// name is that of the DNSRecord.
func (r record) name() string {
	return operatorv1alpha1.DNSRecordName(r.host, r.provider.Type)
}

// records are those of all domains. There are none if the Garden has no DNS providers.
func records(garden *operatorv1alpha1.Garden) ([]record, error) {
	if garden.Spec.DNS == nil || len(garden.Spec.DNS.Providers) == 0 {
		return nil, nil
	}
	providers := garden.Spec.DNS.Providers
	var list []record
	add := func(domain operatorv1alpha1.DNSDomain, hosts ...string) error {
		provider := &providers[0]
		if domain.Provider != nil {
			i := slices.IndexFunc(providers, func(p operatorv1alpha1.DNSProvider) bool { return p.Name == *domain.Provider })
			if i < 0 {
				return fmt.Errorf("domain %q names DNS provider %q, which is not in spec.dns.providers", domain.Name, *domain.Provider)
			}
			provider = &providers[i]
		}
		for _, host := range hosts {
			list = append(list, record{host, provider})
		}
		return nil
	}
	for _, domain := range garden.Spec.VirtualCluster.DNS.Domains {
		if err := add(domain, "api."+domain.Name, "gardener."+domain.Name); err != nil {
			return nil, err
		}
	}
	ingress := garden.Spec.RuntimeCluster.Ingress.Domains
	for _, domain := range ingress {
		if err := add(domain, "*."+domain.Name); err != nil {
			return nil, err
		}
	}
	if c := garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer; c != nil && c.Domain != nil && !covered(c.Domain.Name, ingress) {
		if err := add(*c.Domain, c.Domain.Name); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// covered is whether the wildcard record of an ingress domain is for a host, too.
func covered(host string, domains []operatorv1alpha1.DNSDomain) bool {
	_, parent, _ := strings.Cut(host, ".")
	return slices.ContainsFunc(domains, func(d operatorv1alpha1.DNSDomain) bool { return d.Name == parent })
}

// dnsRecordTasks write the DNSRecords of all domains and delete those of former ones.
func (s *state) dnsRecordTasks() []flow.Task {
	tasks := []flow.Task{flow.Await(stage.ExtensionTimeout, "dnsrecords-stale", "Deleting DNSRecords of former domains", func(ctx context.Context) error {
		return s.deleteRecords(ctx, s.records)
	})}
	for _, r := range s.records {
		tasks = append(tasks, awaitExtension(stage.ExtensionTimeout, "dnsrecord-"+r.name(), "Waiting until DNSRecord of "+r.host+" is ready", func(ctx context.Context) error {
			return s.writeRecord(ctx, r)
		}))
	}
	return tasks
}

// writeRecord writes a DNSRecord with the address of the gateway. One that has not changed needs no request to the provider.
func (s *state) writeRecord(ctx context.Context, r record) error {
	address, err := dns.GatewayAddress(ctx, s.RuntimeAPI, client.ObjectKey{})
	if err != nil {
		return err
	}
	v := extensionobject.Values{Client: s.RuntimeAPI, Clock: s.Clock}
	obj := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: r.name()}}
	if err := dns.DeleteChanged(ctx, v, obj, r.provider.Type, r.host, dns.RecordType(address)); err != nil {
		return err
	}
	if err := extensionobject.Apply(ctx, v, obj, func(obj *extensionsv1alpha1.DNSRecord) {
		metav1.SetMetaDataLabel(&obj.ObjectMeta, origin, operator)
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, constants.DNSIPStack, dns.IPStack(s.source.Garden.Spec.RuntimeCluster.Networking.IPFamilies))
		obj.Spec.DefaultSpec = spec(r.provider.Type, r.provider.ProviderConfig)
		obj.Spec.SecretRef = corev1.SecretReference{Namespace: constants.GardenNamespace, Name: r.provider.SecretRef.Name}
		obj.Spec.Name, obj.Spec.RecordType, obj.Spec.Values = r.host, dns.RecordType(address), []string{address}
		obj.Spec.TTL = new(int64(120))
	}); err != nil {
		return err
	}
	return extensionobject.Await(ctx, v, obj)
}

// deleteRecords deletes the DNSRecords of the garden that are not desired, and waits until they are gone.
func (s *state) deleteRecords(ctx context.Context, desired []record) error {
	list := &extensionsv1alpha1.DNSRecordList{}
	if err := s.RuntimeAPI.List(ctx, list, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{origin: operator}); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("list DNSRecords: %w", err)
	}
	var deletions []func(context.Context) error
	for i := range list.Items {
		obj := &list.Items[i]
		if !slices.ContainsFunc(desired, func(r record) bool { return r.name() == obj.Name }) {
			deletions = append(deletions, func(ctx context.Context) error { return s.run.DeleteExtension(ctx, obj) })
		}
	}
	return flow.Parallel(ctx, deletions...)
}

// bucket is the BackupBucket, and entry the BackupEntry, with their names only.
func (s *state) bucket() *extensionsv1alpha1.BackupBucket {
	return &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: s.source.BucketName()}}
}

func (s *state) entry() *extensionsv1alpha1.BackupEntry {
	return &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: s.source.BackupEntryName()}}
}

// checksum returns a checksum of the data of a Secret in the runtime cluster.
func (s *state) checksum(ctx context.Context, ref corev1.SecretReference) (string, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := s.RuntimeAPI.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("read Secret %q with the credentials for backups: %w", key, err)
	}
	return workload.ChecksumOfData(secret.Data)
}

// backupTasks write the BackupBucket, and the BackupEntry in it, if the main etcd has backups. The etcd waits for the credentials that the extension
// then writes.
func (s *state) backupTasks() []flow.Task {
	backup := s.source.Backup()
	if backup == nil {
		return nil
	}
	region := ptr.Deref(backup.Region, ptr.Deref(s.garden.Spec.RuntimeCluster.Provider.Region, ""))
	secret := corev1.SecretReference{Namespace: constants.GardenNamespace, Name: backup.SecretRef.Name}
	v := extensionobject.Values{Client: s.RuntimeAPI, Clock: s.Clock}
	ofBucket := v
	ofBucket.Period = extensionobject.BucketPeriod
	return []flow.Task{
		awaitExtension(stage.ExtensionTimeout, "backup-bucket", "Waiting until BackupBucket is ready", func(ctx context.Context) error {
			bucket := s.bucket()
			credentials, err := s.checksum(ctx, secret)
			if err != nil {
				return err
			}
			if err := extensionobject.Apply(ctx, ofBucket, bucket, func(bucket *extensionsv1alpha1.BackupBucket) {
				metav1.SetMetaDataAnnotation(&bucket.ObjectMeta, extensionobject.AnnotationCredentials, credentials)
				bucket.Spec = extensionsv1alpha1.BackupBucketSpec{DefaultSpec: spec(backup.Provider, backup.ProviderConfig), Region: region, SecretRef: secret}
			}); err != nil {
				return err
			}
			return extensionobject.Await(ctx, v, bucket)
		}),
		awaitExtension(stage.ExtensionTimeout, "backup-entry", "Waiting until BackupEntry is ready", func(ctx context.Context) error {
			bucket, entry := s.bucket(), s.entry()
			if err := s.RuntimeAPI.Get(ctx, client.ObjectKeyFromObject(bucket), bucket); err != nil {
				return fmt.Errorf("read BackupBucket %q: %w", bucket.Name, err)
			}
			used := ptr.Deref(bucket.Status.GeneratedSecretRef, secret)
			credentials, err := s.checksum(ctx, used)
			if err != nil {
				return err
			}
			if err := extensionobject.Apply(ctx, v, entry, func(entry *extensionsv1alpha1.BackupEntry) {
				metav1.SetMetaDataAnnotation(&entry.ObjectMeta, extensionobject.AnnotationCredentials, credentials)
				entry.Spec = extensionsv1alpha1.BackupEntrySpec{
					DefaultSpec: spec(backup.Provider, backup.ProviderConfig), Region: region, SecretRef: used, BucketName: bucket.Name,
					BackupBucketProviderStatus: bucket.Status.ProviderStatus,
				}
			}); err != nil {
				return err
			}
			return extensionobject.Await(ctx, v, entry)
		}, "backup-bucket"),
	}
}

// spec is what all resources of extensions for the garden have.
func spec(typ string, config *runtime.RawExtension) extensionsv1alpha1.DefaultSpec {
	return extensionsv1alpha1.DefaultSpec{Type: typ, Class: new(class), ProviderConfig: config}
}

// observeExtensions reads the Extensions that the garden has for itself. A deleted one has none: all of them are stale.
func (s *state) observeExtensions(ctx context.Context) error {
	installed, existing := &operatorv1alpha1.ExtensionList{}, &extensionsv1alpha1.ExtensionList{}
	if err := s.RuntimeAPI.List(ctx, installed); err != nil {
		return fmt.Errorf("list Extensions of operator.gardener.cloud: %w", err)
	}
	if s.garden.DeletionTimestamp == nil {
		s.desired = operatorextension.Wanted(s.garden, installed.Items)
	}
	// The flow deploys the kinds of extensions, so they may not exist yet.
	if err := s.RuntimeAPI.List(ctx, existing, client.InNamespace(constants.GardenNamespace)); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("list Extensions: %w", err)
	}
	own := slices.DeleteFunc(existing.Items, func(e extensionsv1alpha1.Extension) bool { return ptr.Deref(e.Spec.Class, "") != class })
	s.stale = extension.Stale(own, s.desired, operatorextension.Registrations(installed.Items))
	return nil
}

// extensionTasks are those of the Extensions of the garden: before kube-apiserver, or when gardener-apiserver serves.
func (s *state) extensionTasks() []flow.Task {
	tasks := make([]flow.Task, 0, len(s.desired)+len(s.stale))
	for _, e := range s.desired {
		task := awaitExtension(cmp.Or(e.Timeout, stage.ExtensionTimeout), extension.ID(e.Type), "Waiting until Extension "+e.Type+" is ready", func(ctx context.Context) error {
			return stage.ExtendAndAwait(ctx, s.run, e.Object(constants.GardenNamespace), func(obj *extensionsv1alpha1.Extension) {
				obj.Spec.DefaultSpec = spec(e.Type, e.Config)
			})
		})
		if !slices.Contains(extension.Inputs{Desired: s.desired}.IDsBeforeAPIServer(), task.ID) {
			task.After = append(task.After, "gardener-apiserver-ready")
		}
		tasks = append(tasks, task)
	}
	for _, e := range s.stale {
		tasks = append(tasks, extension.Deletion(s.run, e, "gardener-apiserver-ready"))
	}
	return tasks
}
