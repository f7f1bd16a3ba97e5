package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// rootCAConfigMap is the ConfigMap with the CA bundle of the cluster, in each namespace.
	rootCAConfigMap = "kube-root-ca.crt"
	// keyNameLabel is on ServiceAccounts that have a static token of the new key during a rotation. Its value is the name of the key's Secret.
	keyNameLabel = "credentials.gardener.cloud/key-name"
)

// Rotation is which credentials a run replaces that objects of users in the cluster have.
type Rotation struct {
	// CA is whether the CA bundle of the cluster changes.
	CA bool
	// PreparesKey is whether the new key for tokens of ServiceAccounts signs from now on, CompletesKey whether the old one is not trusted any more.
	PreparesKey, CompletesKey bool
}

// rotationTasks are the tasks after which users can go on with a rotation. kube-controller-manager writes what they wait for.
func (in Inputs) rotationTasks() []flow.Task {
	await := func(id, title string, run func(context.Context, client.WithWatch) error) flow.Task {
		return flow.Await(stage.PodsTimeout, id, title, func(ctx context.Context) error {
			shootClient, err := in.Run.Target.Client(ctx)
			if err != nil {
				return err
			}
			return run(ctx, shootClient)
		}, "kube-controller-manager-ready")
	}
	var tasks []flow.Task
	if in.Rotation.CA {
		tasks = append(tasks, await("root-ca-published", "Waiting until all namespaces of the "+in.Run.Of.Noun()+" have the new CA bundle", in.rootCAPublished))
	}
	if in.Rotation.PreparesKey {
		tasks = append(tasks, await("new-static-tokens", "Creating static tokens of ServiceAccounts with the new key", in.createStaticTokens))
	}
	if in.Rotation.CompletesKey {
		tasks = append(tasks, await("old-static-tokens", "Replacing static tokens of ServiceAccounts with the old key", in.replaceStaticTokens))
	}
	return tasks
}

// rootCAPublished waits until all namespaces, and all Secrets with static tokens, have the CA bundle: with another one, their pods would not
// trust the kube-apiserver after the next step. In namespaces that are being deleted, it is not updated.
func (in Inputs) rootCAPublished(ctx context.Context, shootClient client.WithWatch) error {
	set, err := in.Credentials.All()
	if err != nil {
		return err
	}
	bundle := set.Bundle(constants.SecretNameCACluster)
	return flow.Parallel(ctx,
		func(ctx context.Context) error {
			return kube.Await(ctx, shootClient, &corev1.ConfigMapList{}, func(found []*corev1.ConfigMap) error {
				published := map[string]bool{}
				for _, configMap := range found {
					published[configMap.Namespace] = configMap.Data[corev1.ServiceAccountRootCAKey] == string(bundle)
				}
				namespaces := &corev1.NamespaceList{}
				if err := shootClient.List(ctx, namespaces); err != nil {
					return fmt.Errorf("list Namespaces in the cluster: %w", err)
				}
				var missing []string
				for _, namespace := range namespaces.Items {
					if namespace.DeletionTimestamp == nil && !published[namespace.Name] {
						missing = append(missing, namespace.Name)
					}
				}
				return pending("ConfigMap "+rootCAConfigMap+" does not have the new CA bundle in %d namespaces: %s", missing)
			}, nil, client.MatchingFields{"metadata.name": rootCAConfigMap})
		},
		func(ctx context.Context) error {
			if in.Run.Of == instance.VirtualGarden {
				return nil // no controller writes static tokens
			}
			return awaitStaticTokens(ctx, shootClient, func(secrets []*corev1.Secret) error {
				var outdated []string
				for _, secret := range secrets {
					if !bytes.Equal(secret.Data[corev1.ServiceAccountRootCAKey], bundle) {
						outdated = append(outdated, client.ObjectKeyFromObject(secret).String())
					}
				}
				return pending("%d Secrets with static tokens do not have the new CA bundle: %s", outdated)
			})
		},
	)
}

// createStaticTokens creates another Secret with a static token for each ServiceAccount that refers to one, so that users can replace those of
// the old key. It waits for the new tokens.
func (in Inputs) createStaticTokens(ctx context.Context, shootClient client.WithWatch) error {
	key, err := in.currentKey()
	if err != nil {
		return err
	}
	accounts, secrets, err := staticTokens(ctx, shootClient)
	if err != nil {
		return err
	}
	created := map[client.ObjectKey]bool{}
	for _, account := range accounts {
		name := key.secretName(account.Name)
		if !slices.ContainsFunc(account.Secrets, func(ref corev1.ObjectReference) bool {
			return secrets[client.ObjectKey{Namespace: account.Namespace, Name: ref.Name}] != nil
		}) {
			continue
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name}},
			Type:       corev1.SecretTypeServiceAccountToken,
		}
		if account.Labels[keyNameLabel] != key.name {
			if err := shootClient.Create(ctx, secret); apierrors.IsForbidden(err) {
				// A quota is used up, or the namespace is being deleted. The completion has tokens of the old key signed again.
				logf.FromContext(ctx).Info("Keeping the static token of a ServiceAccount", "serviceAccount", client.ObjectKeyFromObject(account), "reason", err.Error())
				continue
			} else if client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("create Secret %q in the cluster: %w", client.ObjectKeyFromObject(secret), err)
			}
			if err := updateAccount(ctx, shootClient, account, func(account *corev1.ServiceAccount) {
				metav1.SetMetaDataLabel(&account.ObjectMeta, keyNameLabel, key.name)
				account.Secrets = append([]corev1.ObjectReference{{Name: name}}, slices.DeleteFunc(account.Secrets, func(ref corev1.ObjectReference) bool { return ref.Name == name })...)
			}); err != nil {
				return err
			}
		}
		created[client.ObjectKeyFromObject(secret)] = true
	}
	if len(created) == 0 {
		return nil
	}
	return key.signed(ctx, shootClient, func(secret *corev1.Secret) bool { return created[client.ObjectKeyFromObject(secret)] })
}

// replaceStaticTokens deletes Secrets of the old key whose ServiceAccounts have one of the new key. In all others, kube-controller-manager
// writes a new token: the old one is worth nothing any more.
func (in Inputs) replaceStaticTokens(ctx context.Context, shootClient client.WithWatch) error {
	key, err := in.currentKey()
	if err != nil {
		return err
	}
	accounts, secrets, err := staticTokens(ctx, shootClient)
	if err != nil {
		return err
	}
	for _, account := range accounts {
		if _, ok := account.Labels[keyNameLabel]; !ok {
			continue
		}
		var old []*corev1.Secret
		renewed := false
		for _, ref := range account.Secrets {
			if secret := secrets[client.ObjectKey{Namespace: account.Namespace, Name: ref.Name}]; secret == nil {
				continue
			} else if key.signs(secret) {
				renewed = true
			} else {
				old = append(old, secret)
			}
		}
		if !renewed {
			old = nil
		}
		if err := updateAccount(ctx, shootClient, account, func(account *corev1.ServiceAccount) {
			delete(account.Labels, keyNameLabel)
			account.Secrets = slices.DeleteFunc(account.Secrets, func(ref corev1.ObjectReference) bool {
				return slices.ContainsFunc(old, func(secret *corev1.Secret) bool { return secret.Name == ref.Name })
			})
		}); err != nil {
			return err
		}
		for _, secret := range old {
			if err := shootClient.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete Secret %q in the cluster: %w", client.ObjectKeyFromObject(secret), err)
			}
		}
	}
	return key.signed(ctx, shootClient, func(*corev1.Secret) bool { return true })
}

// signingKey is the key that signs tokens of ServiceAccounts.
type signingKey struct {
	// name is that of its Secret, id is in tokens, and suffix is part of names.
	name, id, suffix string
}

// secretName is that of the Secret with a token of the key for a ServiceAccount. It is not longer than names may be.
func (k signingKey) secretName(account string) string {
	suffix := "-token-" + k.suffix
	return strings.TrimRight(account[:min(len(account), validation.DNS1123SubdomainMaxLength-len(suffix))], ".-") + suffix
}

func (in Inputs) currentKey() (signingKey, error) {
	set, err := in.Credentials.All()
	if err != nil {
		return signingKey{}, err
	}
	current := set.Current(constants.SecretNameServiceAccountKey)
	id, err := serviceaccountkey.ID(current)
	sum := sha256.Sum256([]byte(id))
	return signingKey{name: current.Name, id: id, suffix: hex.EncodeToString(sum[:3])}, err
}

// signs is whether the token in a Secret is of the key.
func (k signingKey) signs(secret *corev1.Secret) bool {
	return serviceaccountkey.Signs(k.id, string(secret.Data[corev1.ServiceAccountTokenKey]))
}

// signed waits until the chosen Secrets have tokens of the key. Tokens of another one are removed, so that kube-controller-manager writes them
// again.
func (k signingKey) signed(ctx context.Context, shootClient client.WithWatch, chosen func(*corev1.Secret) bool) error {
	return awaitStaticTokens(ctx, shootClient, func(secrets []*corev1.Secret) error {
		var outdated []string
		for _, secret := range secrets {
			if !chosen(secret) || k.signs(secret) {
				continue
			}
			outdated = append(outdated, client.ObjectKeyFromObject(secret).String())
			if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
				continue
			}
			without := secret.DeepCopy()
			delete(without.Data, corev1.ServiceAccountTokenKey)
			if err := shootClient.Update(ctx, without); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("remove the old token from Secret %q in the cluster: %w", client.ObjectKeyFromObject(secret), err)
			}
		}
		return pending("%d Secrets do not have a static token of the new key: %s", outdated)
	})
}

// awaitStaticTokens waits until a check of all Secrets with static tokens passes.
func awaitStaticTokens(ctx context.Context, shootClient client.WithWatch, check func([]*corev1.Secret) error) error {
	return kube.Await(ctx, shootClient, &corev1.SecretList{}, check, nil, client.MatchingFields{"type": string(corev1.SecretTypeServiceAccountToken)})
}

// staticTokens returns the ServiceAccounts that refer to Secrets, and the Secrets with static tokens. Others are deleted with their namespace.
func staticTokens(ctx context.Context, shootClient client.Client) ([]*corev1.ServiceAccount, map[client.ObjectKey]*corev1.Secret, error) {
	accounts, secrets := &corev1.ServiceAccountList{}, &corev1.SecretList{}
	if err := shootClient.List(ctx, accounts); err != nil {
		return nil, nil, fmt.Errorf("list ServiceAccounts in the cluster: %w", err)
	}
	if err := shootClient.List(ctx, secrets, client.MatchingFields{"type": string(corev1.SecretTypeServiceAccountToken)}); err != nil {
		return nil, nil, fmt.Errorf("list Secrets with static tokens in the cluster: %w", err)
	}
	var referring []*corev1.ServiceAccount
	for i := range accounts.Items {
		if account := &accounts.Items[i]; len(account.Secrets) > 0 && account.DeletionTimestamp == nil {
			referring = append(referring, account)
		}
	}
	byKey := map[client.ObjectKey]*corev1.Secret{}
	for i := range secrets.Items {
		byKey[client.ObjectKeyFromObject(&secrets.Items[i])] = &secrets.Items[i]
	}
	return referring, byKey, nil
}

// updateAccount changes a ServiceAccount, which kube-controller-manager and users change, too.
func updateAccount(ctx context.Context, shootClient client.Client, account *corev1.ServiceAccount, change func(*corev1.ServiceAccount)) error {
	key := client.ObjectKeyFromObject(account)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := &corev1.ServiceAccount{}
		if err := shootClient.Get(ctx, key, current); err != nil {
			return err
		}
		change(current)
		return shootClient.Update(ctx, current)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("update ServiceAccount %q in the cluster: %w", key, err)
	}
	return nil
}

// pending returns an error with the number of objects and some of their names, or nil if there are none.
func pending(format string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf(format, len(names), strings.Join(names[:min(len(names), stage.Named)], ", "))
}
