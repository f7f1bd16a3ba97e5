// Package publication is the stage that publishes in the garden what users and other processes need to reach a cluster: CA bundles, the
// CA of client certificates, SSH keys, credentials for monitoring, and the documents of a managed issuer.
package publication

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Shoot owns what is published, in its namespace.
	Shoot *corev1beta1.Shoot
	// Project is the name of the shoot's project.
	Project string
	// Issuer is the URL of the managed issuer of service account tokens. Empty means that there is none.
	Issuer string
	// HadIssuer is whether a shoot that is deleted may have documents of a managed issuer.
	HadIssuer bool
	// Credentials are read after the task credentials.
	Credentials *credentials.Set
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	tasks := []flow.Task{flow.Do("publish-credentials", "Publishing CA bundles and SSH keys in the garden", in.publish, "credentials")}
	if in.Issuer != "" {
		tasks = append(tasks, flow.Do("publish-issuer", "Publishing OpenID configuration and public keys of the managed ServiceAccount issuer in the garden", in.publishIssuer, "credentials"))
	}
	return tasks
}

// Deletion returns the task that deletes what is published.
func Deletion(in Inputs, after ...string) flow.Task {
	meta := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: in.Shoot.Namespace, Name: in.Shoot.Name + "." + suffix}
	}
	objects := []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta(constants.ShootProjectSecretSuffixCACluster)},
		&corev1.ConfigMap{ObjectMeta: meta(constants.ShootProjectConfigMapSuffixCAKubelet)},
		&corev1.Secret{ObjectMeta: meta(constants.ShootProjectSecretSuffixCACluster)},
		&corev1.Secret{ObjectMeta: meta(constants.ShootProjectSecretSuffixSSHKeypair)},
		&corev1.Secret{ObjectMeta: meta(constants.ShootProjectSecretSuffixOldSSHKeypair)},
		&corev1.Secret{ObjectMeta: meta(constants.ShootProjectSecretSuffixMonitoring)},
		&corev1beta1.InternalSecret{ObjectMeta: meta(constants.ShootProjectSecretSuffixCAClient)},
	}
	if in.HadIssuer {
		objects = append(objects, in.issuerSecret())
	}
	return flow.Do("unpublish", "Deleting published credentials in the garden", func(ctx context.Context) error {
		var errs []error
		for _, object := range objects { // none depends on another one
			errs = append(errs, in.unpublish(ctx, object))
		}
		return errors.Join(errs...)
	}, after...)
}

// metadata is that of a published object. The garbage collector of the garden deletes it with the Shoot, should nothing else.
func (in Inputs) metadata(suffix, role string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: in.Shoot.Namespace, Name: in.Shoot.Name + "." + suffix,
		Labels: map[string]string{
			constants.GardenRole: role, constants.ShootName: in.Shoot.Name, constants.ShootUID: string(in.Shoot.UID),
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(in.Shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))},
	}
}

// restricted is metadata of a CA bundle, which only Gardener may change.
func (in Inputs) restricted(suffix, role string) metav1.ObjectMeta {
	m := in.metadata(suffix, role)
	m.Labels[constants.UpdateRestriction] = "true"
	return m
}

// published is restricted for a CA bundle that a server publishes.
func (in Inputs) published(suffix, role string) metav1.ObjectMeta {
	m := in.restricted(suffix, role)
	m.Labels[constants.DiscoveryPublic] = constants.DiscoveryShootCA
	return m
}

// publish writes into the garden the CA bundles that clients trust, the CA that signs certificates of clients, the SSH keys of nodes, and the
// credentials for monitoring.
func (in Inputs) publish(ctx context.Context) error {
	set, err := in.Credentials.All()
	if err != nil {
		return err
	}
	bundle, signer := set.Bundle(constants.SecretNameCACluster), set.Current(constants.SecretNameCAClient)
	c := in.Run.GardenCache
	errs := []error{ // none depends on another one
		write(ctx, c, &corev1.ConfigMap{ObjectMeta: in.published(constants.ShootProjectSecretSuffixCACluster, constants.GardenRoleCACluster)},
			func(o *corev1.ConfigMap) { o.Data = map[string]string{secrets.DataKeyCertificateCA: string(bundle)} }),
		write(ctx, c, &corev1.Secret{ObjectMeta: in.restricted(constants.ShootProjectSecretSuffixCACluster, constants.GardenRoleCACluster)},
			func(o *corev1.Secret) { o.Data = map[string][]byte{secrets.DataKeyCertificateCA: bundle} }),
		write(ctx, c, &corev1beta1.InternalSecret{ObjectMeta: in.metadata(constants.ShootProjectSecretSuffixCAClient, constants.GardenRoleCAClient)},
			func(o *corev1beta1.InternalSecret) {
				o.Data = map[string][]byte{
					secrets.DataKeyCertificateCA: signer.Data[secrets.DataKeyCertificateCA],
					secrets.DataKeyPrivateKeyCA:  signer.Data[secrets.DataKeyPrivateKeyCA],
				}
			}),
	}
	if kubelet := set.Bundle(constants.SecretNameCAKubelet); len(kubelet) > 0 {
		errs = append(errs, write(ctx, c,
			&corev1.ConfigMap{ObjectMeta: in.restricted(constants.ShootProjectConfigMapSuffixCAKubelet, constants.GardenRoleCAKubelet)},
			func(o *corev1.ConfigMap) { o.Data = map[string]string{secrets.DataKeyCertificateCA: string(kubelet)} }))
	}
	for _, credential := range []struct {
		suffix, role string
		source       *corev1.Secret
	}{
		{constants.ShootProjectSecretSuffixSSHKeypair, constants.GardenRoleSSHKeyPair, set.Current(constants.SecretNameSSHKeyPair)},
		{constants.ShootProjectSecretSuffixOldSSHKeypair, constants.GardenRoleSSHKeyPair, set.Old(constants.SecretNameSSHKeyPair)},
		{constants.ShootProjectSecretSuffixMonitoring, constants.GardenRoleMonitoring, set.Current(constants.SecretNameObservabilityIngressUsers)},
	} {
		secret := &corev1.Secret{ObjectMeta: in.metadata(credential.suffix, credential.role)}
		if credential.source == nil {
			errs = append(errs, in.unpublish(ctx, secret))
			continue
		}
		errs = append(errs, write(ctx, c, secret, func(o *corev1.Secret) { o.Data = credential.source.Data }))
	}
	return errors.Join(errs...)
}

func (in Inputs) unpublish(ctx context.Context, object client.Object) error {
	if err := in.Run.GardenCache.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func (in Inputs) issuerSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenerShootIssuerNamespace, Name: issuer.SecretName(in.Project, in.Shoot.UID),
		Labels: map[string]string{
			// The server of managed issuers finds it by this one, that of the original by the second.
			constants.DiscoveryPublic: constants.DiscoveryServiceAccount, constants.PublicKeys: constants.DiscoveryServiceAccount,
			constants.ProjectName: in.Project, constants.ShootName: in.Shoot.Name, constants.ShootNamespace: in.Shoot.Namespace,
		},
	}}
}

// publishIssuer writes the documents of the managed issuer into the garden, where its server finds them.
func (in Inputs) publishIssuer(ctx context.Context) error {
	set, err := in.Credentials.All()
	if err != nil {
		return err
	}
	var keys []crypto.PublicKey
	for _, secret := range []*corev1.Secret{
		set.Current(constants.SecretNameServiceAccountKey), set.Old(constants.SecretNameServiceAccountKey),
	} {
		if secret == nil {
			continue
		}
		public, err := serviceaccountkey.Public(secret)
		if err != nil {
			return err
		}
		keys = append(keys, public)
	}
	config, keySet, err := serviceaccountkey.IssuerDocuments(in.Issuer, keys)
	if err != nil {
		return err
	}
	return write(ctx, in.Run.GardenCache, in.issuerSecret(), func(o *corev1.Secret) {
		o.Data = map[string][]byte{issuer.OpenIDConfigKey: config, issuer.KeySetKey: keySet}
	})
}

// write creates or patches an object, so that it has the labels and owners of the given one, and what a function sets. Other labels stay.
func write[T client.Object](ctx context.Context, c client.Client, obj T, set func(T)) error {
	labels, owners := maps.Clone(obj.GetLabels()), obj.GetOwnerReferences()
	_, err := controllerutil.CreateOrPatch(ctx, c, obj, func() error {
		all := maps.Clone(obj.GetLabels())
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, labels)
		obj.SetLabels(all)
		if len(owners) > 0 {
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
