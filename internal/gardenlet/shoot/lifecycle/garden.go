package lifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/gardenlet/shoot/credentials"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/secrets"
)

// published is the metadata of what the garden has of a shoot's credentials. It goes with the Shoot, should nobody else remove it.
func published(shoot *corev1beta1.Shoot, suffix, role string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: shoot.Namespace, Name: shoot.Name + "." + suffix,
		Labels: map[string]string{
			constants.GardenRole: role, constants.ShootName: shoot.Name, constants.ShootUID: string(shoot.UID),
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))},
	}
}

// publish writes into the garden what is needed to reach a shoot: whom to trust, and who signs for clients.
func (r *reconciler) publish(ctx context.Context, w *world, set *credentials.Set) error {
	bundle := set.Bundle(constants.SecretNameCACluster)
	signer := set.Current(constants.SecretNameCAClient)
	if len(bundle) == 0 || signer == nil {
		return errors.New("authorities were not made yet")
	}
	errs := []error{
		apply(ctx, r.gardenClient, &corev1.ConfigMap{ObjectMeta: published(w.shoot, constants.ShootProjectSecretSuffixCACluster, constants.GardenRoleCACluster)},
			func(o *corev1.ConfigMap) { o.Data = map[string]string{secrets.DataKeyCertificateCA: string(bundle)} }),
		apply(ctx, r.gardenClient, &corev1.Secret{ObjectMeta: published(w.shoot, constants.ShootProjectSecretSuffixCACluster, constants.GardenRoleCACluster)},
			func(o *corev1.Secret) { o.Data = map[string][]byte{secrets.DataKeyCertificateCA: bundle} }),
		apply(ctx, r.gardenClient, &corev1beta1.InternalSecret{ObjectMeta: published(w.shoot, constants.ShootProjectSecretSuffixCAClient, constants.GardenRoleCAClient)},
			func(o *corev1beta1.InternalSecret) {
				o.Data = map[string][]byte{
					secrets.DataKeyCertificateCA: signer.Data[secrets.DataKeyCertificateCA],
					secrets.DataKeyPrivateKeyCA:  signer.Data[secrets.DataKeyPrivateKeyCA],
				}
			}),
	}
	if kubelet := set.Bundle(constants.SecretNameCAKubelet); len(kubelet) > 0 {
		errs = append(errs, apply(ctx, r.gardenClient,
			&corev1.ConfigMap{ObjectMeta: published(w.shoot, constants.ShootProjectConfigMapSuffixCAKubelet, constants.GardenRoleCAKubelet)},
			func(o *corev1.ConfigMap) { o.Data = map[string]string{secrets.DataKeyCertificateCA: string(kubelet)} }))
	}
	for suffix, key := range map[string]*corev1.Secret{
		constants.ShootProjectSecretSuffixSSHKeypair:    set.Current(constants.SecretNameSSHKeyPair),
		constants.ShootProjectSecretSuffixOldSSHKeypair: set.Old(constants.SecretNameSSHKeyPair),
	} {
		secret := &corev1.Secret{ObjectMeta: published(w.shoot, suffix, constants.GardenRoleSSHKeyPair)}
		if key == nil {
			errs = append(errs, unpublish(ctx, r.gardenClient, secret))
			continue
		}
		errs = append(errs, apply(ctx, r.gardenClient, secret, func(o *corev1.Secret) { o.Data = key.Data }))
	}
	return errors.Join(errs...)
}

// unpublishAll removes what publish wrote.
func (r *reconciler) unpublishAll(ctx context.Context, shoot *corev1beta1.Shoot) error {
	meta := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name + "." + suffix}
	}
	return errors.Join(
		unpublish(ctx, r.gardenClient, &corev1.ConfigMap{ObjectMeta: meta(constants.ShootProjectSecretSuffixCACluster)}),
		unpublish(ctx, r.gardenClient, &corev1.ConfigMap{ObjectMeta: meta(constants.ShootProjectConfigMapSuffixCAKubelet)}),
		unpublish(ctx, r.gardenClient, &corev1.Secret{ObjectMeta: meta(constants.ShootProjectSecretSuffixCACluster)}),
		unpublish(ctx, r.gardenClient, &corev1.Secret{ObjectMeta: meta(constants.ShootProjectSecretSuffixSSHKeypair)}),
		unpublish(ctx, r.gardenClient, &corev1.Secret{ObjectMeta: meta(constants.ShootProjectSecretSuffixOldSSHKeypair)}),
		unpublish(ctx, r.gardenClient, &corev1beta1.InternalSecret{ObjectMeta: meta(constants.ShootProjectSecretSuffixCAClient)}),
	)
}

func unpublish(ctx context.Context, c client.Client, obj client.Object) error {
	if err := c.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// apply makes an object have the labels, annotations and owners of another one, and what a function sets.
func apply[T client.Object](ctx context.Context, c client.Client, obj T, set func(T)) error {
	want := obj.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has its original's type
	_, err := controllerutil.CreateOrPatch(ctx, c, obj, func() error {
		obj.SetLabels(merge(obj.GetLabels(), want.GetLabels()))
		obj.SetAnnotations(merge(obj.GetAnnotations(), want.GetAnnotations()))
		if owners := want.GetOwnerReferences(); len(owners) > 0 {
			obj.SetOwnerReferences(owners)
		}
		set(obj)
		return nil
	})
	if err != nil {
		return fmt.Errorf("write %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

func merge(into, from map[string]string) map[string]string {
	if len(from) > 0 && into == nil {
		into = map[string]string{}
	}
	for key, value := range from {
		into[key] = value
	}
	return into
}

// backupEntryName is that of the BackupEntry of a shoot, and the path of its backups in the bucket.
func backupEntryName(w *world) string { return w.namespace + "--" + string(w.shoot.UID) }

// orderBackup orders a place for backups, and waits until it is there.
func (r *reconciler) orderBackup(ctx context.Context, w *world) error {
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot.Namespace, Name: backupEntryName(w)}}
	bucket := string(w.seed.UID)
	_, err := controllerutil.CreateOrPatch(ctx, r.gardenClient, entry, func() error {
		entry.Annotations = merge(entry.Annotations, map[string]string{constants.ShootPurposeAnnotation: string(deref(w.shoot.Spec.Purpose))})
		entry.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))}
		if entry.Spec.BucketName == "" { // backups stay where they are
			entry.Spec.BucketName = bucket
		}
		entry.Spec.SeedName = &w.seed.Name
		return nil
	})
	if err != nil {
		return fmt.Errorf("write BackupEntry %q: %w", entry.Name, err)
	}
	ctx, heard, stop := extensionobject.Impatient(ctx)
	defer stop()
	return awaitOne(ctx, r.GardenClient, entry.Namespace, entry.Name, &corev1beta1.BackupEntryList{}, func(current *corev1beta1.BackupEntry) error {
		last := current.Status.LastOperation
		heard(current.Status.LastError)
		switch {
		case current.Status.LastError != nil:
			return errorcode.With(fmt.Errorf("BackupEntry %q: %s", entry.Name, current.Status.LastError.Description), current.Status.LastError.Codes...)
		case last == nil || current.Status.ObservedGeneration != current.Generation:
			return fmt.Errorf("BackupEntry %q was not looked at yet", entry.Name)
		case last.State != corev1beta1.LastOperationStateSucceeded:
			return fmt.Errorf("BackupEntry %q: %s is %s: %s", entry.Name, last.Type, last.State, last.Description)
		}
		return nil
	})
}

// dropBackup deletes the BackupEntry. Its controller keeps the backups for as long as the gardenlet's configuration says.
func (r *reconciler) dropBackup(ctx context.Context, w *world) error {
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot.Namespace, Name: backupEntryName(w)}}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(entry), entry)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = kube.PatchMetadata(ctx, r.gardenClient, entry, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
		})
	}
	if err == nil {
		err = r.gardenClient.Delete(ctx, entry)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete BackupEntry %q: %w", entry.Name, err)
	}
	return nil
}
