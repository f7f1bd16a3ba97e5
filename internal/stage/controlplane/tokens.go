package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/internal/tokenrequestor"
	"gardener.cloud/gardener/pkg/flow"
)

func (in Inputs) applyAccessSecrets(ctx context.Context) error {
	objects, err := in.accessSecrets(ctx)
	if err != nil {
		return err
	}
	return in.Run.Apply(ctx, objects...)
}

// accessSecrets are the Secrets in which components of the control plane, extensions and the gardenlet find their tokens. A token that is
// part of a kubeconfig stays there: its users have no other one until gardener-resource-manager notices that it is missing.
func (in Inputs) accessSecrets(ctx context.Context) ([]client.Object, error) {
	names := append([]string{kubecontrollermanager.Name, resourcemanager.Name}, in.Accesses...)
	if in.KubeScheduler != nil {
		names = append(names, kubescheduler.Name)
	}
	objects := make([]client.Object, 0, len(names)+len(in.Kubeconfigs))
	for _, name := range names {
		objects = append(objects, shootaccess.Secret(in.Run.Namespace, name))
	}
	set, err := in.Credentials.All()
	if err != nil {
		return nil, err
	}
	bundle := set.Bundle(constants.SecretNameCACluster)
	for name, server := range in.Kubeconfigs {
		account, own := strings.CutPrefix(name, shootaccess.SecretName(""))
		if !own {
			account = constants.SecretNameGardener
		}
		secret := shootaccess.Secret(in.Run.Namespace, account)
		secret.Name = name
		before := &corev1.Secret{}
		if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(secret), before); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read Secret %q: %w", name, err)
		}
		token, err := tokenrequestor.TokenIn(before)
		if err != nil {
			token = "" // an invalid kubeconfig is replaced
		}
		secret.ResourceVersion = before.ResourceVersion // a token that is renewed right now must not be lost
		secret.Data = map[string][]byte{resourcesv1alpha1.DataKeyKubeconfig: kubeconfig(in.Run.Namespace, server, bundle, token)}
		objects = append(objects, secret)
	}
	return objects, nil
}

// requestTokens fills the Secrets that have no valid token. Later, gardener-resource-manager renews tokens: as it needs one itself first,
// and as the others need not wait for it, these are requested here. So are those that replace tokens of a key which is, or will be, no
// longer trusted, or are of ServiceAccounts that are gone: without a token of its own, gardener-resource-manager cannot request any.
func (in Inputs) requestTokens(ctx context.Context) error {
	set, err := in.Credentials.All()
	if err != nil {
		return err
	}
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	if err := in.grant(ctx, shootClient); err != nil {
		return err
	}
	list := &corev1.SecretList{}
	if err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace), client.MatchingLabels{
		resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
		resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassShoot,
	}); err != nil {
		return fmt.Errorf("list Secrets for tokens: %w", err)
	}
	key, err := serviceaccountkey.ID(set.Current(constants.SecretNameServiceAccountKey))
	if err != nil {
		return err
	}
	valid := func(token string) bool { return serviceaccountkey.Signs(key, token) }
	requestor := tokenrequestor.New(in.Run.SeedAPI, shootClient, set.Bundle(constants.SecretNameCACluster), tokenrequestor.Values{
		Class: resourcesv1alpha1.ResourceManagerClassShoot, Clock: in.Run.Clock, Valid: valid,
	})
	exists, err := accountsOf(ctx, shootClient)
	if err != nil {
		return err
	}
	var requests []func(context.Context) error
	for _, secret := range list.Items {
		if token, err := tokenrequestor.TokenIn(&secret); err == nil && valid(token) && exists(&secret, token) && !in.renewalDue(&secret) {
			continue
		}
		requests = append(requests, func(ctx context.Context) error {
			_, err := requestor.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&secret)})
			return err
		})
	}
	return flow.Parallel(ctx, requests...)
}

// accountsOf returns whether the ServiceAccount exists that the token in a Secret says it is of. If not, etcd was restored from a backup that is older.
// Those of components are in kube-system. For a Secret that names another namespace the answer is yes: gardener-resource-manager checks it.
func accountsOf(ctx context.Context, shootClient client.Client) (exists func(secret *corev1.Secret, token string) bool, err error) {
	accounts := &metav1.PartialObjectMetadataList{}
	accounts.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccountList"))
	if err := shootClient.List(ctx, accounts, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return nil, fmt.Errorf("list ServiceAccounts in the cluster: %w", err)
	}
	return func(secret *corev1.Secret, token string) bool {
		if secret.Annotations[resourcesv1alpha1.ServiceAccountNamespace] != metav1.NamespaceSystem {
			return true
		}
		uid := tokenrequestor.AccountIn(token)
		return uid == "" || slices.ContainsFunc(accounts.Items, func(account metav1.PartialObjectMetadata) bool { return account.UID == uid })
	}, nil
}

// renewalDue is whether a token was never requested, or its renewal is overdue: gardener-resource-manager could not renew it, as during a
// hibernation.
func (in Inputs) renewalDue(secret *corev1.Secret) bool {
	due, err := time.Parse(time.RFC3339, secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp])
	return err != nil || in.Run.Clock.Now().After(due)
}

// kubeconfig encodes a kubeconfig with a token, which may be empty.
func kubeconfig(name, server string, caBundle []byte, token string) []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caBundle}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil // these plain types can always be encoded
	}
	return out
}
