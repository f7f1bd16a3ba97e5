package lifecycle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/gardenlet/shoot/credentials"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

// pageSize is how many objects are read at once to be written again.
const pageSize = 500

// knownEncryptionKey is the annotation of the Deployment that says what all its pods can read: the mark of an encryption.
const knownEncryptionKey = "credentials.gardener.cloud/known-encryption-key"

// snapshotLease is the value of druidv1alpha1.LabelComponentKey at the Leases that are renewed with each snapshot.
const snapshotLease = "etcd-snapshot-lease"

// backupTimeout is how long a snapshot that was asked for may take.
const backupTimeout = time.Minute

// reencryption are the tasks that have the API server write again what it encrypts, while the rotation of its key is prepared, or when the
// owner has changed what is encrypted. Afterwards nobody needs the old key, or the key for what is no longer encrypted. All API servers
// learn the new key, or by which key resources are encrypted that were not, before one of them writes with it, and all write with it before
// anything is written again. The old key is dropped when no restore of etcd could need it.
func (h *hosted) reencryption() []flow.Task {
	var tasks []flow.Task
	if encryptionKeyPhase(h.shoot) == corev1beta1.RotationCompleting && h.seed.Spec.Backup != nil {
		tasks = append(tasks, lasting(extensionTimeout, task("reencrypted-saved", "Waiting for a backup that does not need the old encryption key",
			h.backUp, "etcd-main-ready")))
	}
	if !preparesEncryptionKey(h.shoot) && !changesEncryption(h.shoot) {
		return tasks
	}
	rewrite := lasting(podsTimeout, task("reencrypt", "Encrypting data as it is to be now", h.reencrypt, "tokens", "old-kube-apiserver-gone"))
	if !encryptsAnew(h.shoot) { // what is written in plain text, everybody can read
		return append(tasks, rewrite)
	}
	rewrite.After = append(rewrite.After, "encryption-key-used")
	return append(tasks,
		task("encryption-key", "Letting the API server encrypt as it is to be now", h.useEncryptionKey, "old-kube-apiserver-gone"),
		lasting(podsTimeout, task("encryption-key-used", "Waiting until all API servers encrypt as it is to be now", func(ctx context.Context) error {
			if err := h.deploymentReady(ctx, kubeapiserver.Name); err != nil {
				return err
			}
			return h.oldAPIServersGone(ctx)
		}, "encryption-key")),
		rewrite,
	)
}

// encryptsAnew is whether, after this run, something is encrypted that an API server of before could not read.
func encryptsAnew(shoot *corev1beta1.Shoot) bool {
	return preparesEncryptionKey(shoot) || len(addedResources(shoot)) > 0
}

// preparesEncryptionKey is whether this run changes by which key data is encrypted.
func preparesEncryptionKey(shoot *corev1beta1.Shoot) bool {
	return encryptionKeyPhase(shoot) == corev1beta1.RotationPreparing
}

func encryptionKeyPhase(shoot *corev1beta1.Shoot) corev1beta1.CredentialsRotationPhase {
	if c := shoot.Status.Credentials; c != nil && c.Rotation != nil && c.Rotation.ETCDEncryptionKey != nil {
		return c.Rotation.ETCDEncryptionKey.Phase
	}
	return ""
}

// backUp makes sure that a snapshot has everything as it was encrypted with the new key. One is made every few minutes, and at once if
// etcd can be asked.
func (h *hosted) backUp(ctx context.Context) error {
	if err := h.requestBackup(ctx); err != nil {
		logf.FromContext(ctx).Info("Could not ask for a snapshot, waiting for the next one", "reason", err.Error())
	}
	return h.awaitBackup(ctx)
}

// awaitBackup waits until a snapshot is newer than the end of the run in which everything was encrypted with the new key.
func (h *hosted) awaitBackup(ctx context.Context) error {
	prepared := h.shoot.Status.Credentials.Rotation.ETCDEncryptionKey.LastInitiationFinishedTime
	if prepared == nil {
		return nil // nobody knows what to wait for
	}
	return kube.Await(ctx, h.SeedClient, &coordinationv1.LeaseList{}, func(leases []*coordinationv1.Lease) error {
		for _, lease := range leases {
			if at := lease.Spec.RenewTime; at != nil && at.After(prepared.Time) {
				return nil
			}
		}
		return fmt.Errorf("Etcd %q: no snapshot was made since everything was encrypted with the new key", etcd.Name(etcd.Main))
	}, nil, client.InNamespace(h.namespace), client.MatchingLabels{
		druidv1alpha1.LabelPartOfKey: etcd.Name(etcd.Main), druidv1alpha1.LabelComponentKey: snapshotLease,
	})
}

// requestBackup has the leader of the main etcd make a snapshot of what was changed since the last one.
func (h *hosted) requestBackup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, backupTimeout)
	defer cancel()
	own := h.set.Current(credentials.EtcdClient)
	if own == nil {
		return fmt.Errorf("there is no Secret %q yet", credentials.EtcdClient)
	}
	pair, err := tls.X509KeyPair(own.Data[secrets.DataKeyCertificate], own.Data[secrets.DataKeyPrivateKey])
	if err != nil {
		return fmt.Errorf("Secret %q: %w", own.Name, err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(h.set.Bundle(constants.SecretNameCAETCD))
	url := fmt.Sprintf("https://%s.%s.svc:%d/snapshot/delta", etcd.ServiceName(etcd.Main), h.namespace, etcd.PortBackup)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: authorities, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// encryptionMark names how data is encrypted after this run. The same resources may be added, removed and added again: each time is another.
func (h *hosted) encryptionMark() string {
	mark := h.encryption().Keys[0].Name
	if len(addedResources(h.shoot)) > 0 {
		mark += fmt.Sprintf("/%d", h.shoot.Generation)
	}
	return mark
}

// encryptionKnown is whether all API servers can read what is encrypted as it is to be after this run.
func (h *hosted) encryptionKnown(ctx context.Context) (bool, error) {
	deployment := &appsv1.Deployment{}
	if err := h.SeedClient.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: kubeapiserver.Name}, deployment); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Deployment %q: %w", kubeapiserver.Name, err)
	}
	return deployment.Annotations[knownEncryptionKey] == h.encryptionMark(), nil
}

// oldEncryption writes as before this run, and reads what is written after it.
func (h *hosted) oldEncryption() kubeapiserver.Encryption {
	e := h.encryption()
	if preparesEncryptionKey(h.shoot) {
		slices.Reverse(e.Keys)
	}
	added := addedResources(h.shoot)
	e.Resources, e.PlainResources = without(e.Resources, added), append(e.PlainResources, added...)
	return e
}

// useEncryptionKey notes that all API servers can read what is encrypted as it is to be now, and lets them write it.
func (h *hosted) useEncryptionKey(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	if err := h.SeedClient.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: kubeapiserver.Name}, deployment); err != nil {
		return fmt.Errorf("read Deployment %q: %w", kubeapiserver.Name, err)
	}
	if err := kube.PatchMetadata(ctx, h.SeedClient, deployment, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, knownEncryptionKey, h.encryptionMark())
	}); err != nil {
		return err
	}
	return h.deployAPIServer(ctx, h.replicas(h.pods()))
}

func (h *hosted) reencrypt(ctx context.Context) error {
	shoot, err := h.connect(ctx)
	if err != nil {
		return err
	}
	encryption := h.encryption()
	for _, name := range slices.Concat(encryption.Resources, encryption.PlainResources) {
		kind, err := shoot.RESTMapper().KindFor(schema.ParseGroupResource(name).WithVersion(""))
		if meta.IsNoMatchError(err) {
			continue // a kind of users that is not there has no objects
		}
		if err != nil {
			return fmt.Errorf("find kind of %q in the shoot: %w", name, err)
		}
		if err := rewrite(ctx, shoot, kind); err != nil {
			return err
		}
	}
	return nil
}

// rewrite sends a patch without content for each object of a kind: the API server writes what it has read with an old key.
func rewrite(ctx context.Context, shoot client.Client, kind schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for {
		if err := shoot.List(ctx, list, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("list %s in the shoot: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(kind)
			if err := shoot.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("write %s %s again in the shoot: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}
