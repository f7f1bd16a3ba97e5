// Package tokeninvalidator invalidates static tokens of ServiceAccounts that do not mount one: pods with such a ServiceAccount have tokens that
// expire, and the static one in a Secret, which never expires, is not used.
//
// It reads the metadata of Secrets and ServiceAccounts of the target cluster, and Secrets with static tokens. It labels these, and overwrites their
// tokens. A webhook does so before a token is stored, as kube-controller-manager issues another one if a Secret has none.
// Source: concepts.txt, Gardener Resource Manager, "TokenInvalidator Controller".
package tokeninvalidator

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a reconciliation: two reads and a write.
const passTimeout = 30 * time.Second

// invalid is what an invalid token is: "AAAA" in base64. If there were none, kube-controller-manager would issue another one.
var invalid = []byte{0, 0, 0}

// Considered is whether the token in a Secret is to be invalid.
func Considered(secret *corev1.Secret) bool {
	return secret.Type == corev1.SecretTypeServiceAccountToken && secret.Labels[resourcesv1alpha1.TokenInvalidatorConsider] == "true"
}

// Invalidate overwrites the token in a Secret.
func Invalidate(secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[corev1.ServiceAccountTokenKey] = bytes.Clone(invalid)
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, target cluster.Cluster, concurrency int) error {
	r := &reconciler{client: target.GetClient(), api: target.GetAPIReader()}
	cache := target.GetCache()
	return builder.ControllerManagedBy(mgr).Named("token-invalidator").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		// Only metadata, as most Secrets have no static token. All updates count: they may bring a new token.
		WatchesRawSource(source.Kind[client.Object](cache, metadata("Secret"), &handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(ofAccount))).
		WatchesRawSource(source.Kind[client.Object](cache, &corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(r.secretsOf), accountChanged())).
		Complete(r)
}

func metadata(kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: kind}}
}

// ofAccount is whether a Secret may have a token of a ServiceAccount. Its type is not known.
func ofAccount(secret client.Object) bool {
	return secret.GetAnnotations()[corev1.ServiceAccountNameKey] != ""
}

// accountChanged passes changes of what decides whether tokens are valid. Secrets have events of their own when the process starts.
func accountChanged() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, _ := e.ObjectOld.(*corev1.ServiceAccount)
			after, _ := e.ObjectNew.(*corev1.ServiceAccount)
			return refuses(before) != refuses(after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false }, // kube-controller-manager deletes its tokens
	}
}

// refuses is whether static tokens of a ServiceAccount are invalidated.
func refuses(account *corev1.ServiceAccount) bool {
	return !ptr.Deref(account.AutomountServiceAccountToken, true) && account.Labels[resourcesv1alpha1.TokenInvalidatorSkip] != "true"
}

type reconciler struct {
	client client.Client
	// api reads Secrets and ServiceAccounts: the decision must not be that of a cache.
	api client.Reader
}

// secretsOf are the Secrets with tokens of a ServiceAccount.
func (r *reconciler) secretsOf(ctx context.Context, account client.Object) []reconcile.Request {
	secrets := &metav1.PartialObjectMetadataList{TypeMeta: metadata("SecretList").TypeMeta}
	if err := r.client.List(ctx, secrets, client.InNamespace(account.GetNamespace())); err != nil {
		return nil // the cache is synced, and has no other errors
	}
	var requests []reconcile.Request
	for i := range secrets.Items {
		if secrets.Items[i].Annotations[corev1.ServiceAccountNameKey] == account.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&secrets.Items[i])})
		}
	}
	return requests
}

// Reconcile makes the token in a Secret invalid, or has kube-controller-manager issue another one.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	secret, account := &corev1.Secret{}, &corev1.ServiceAccount{}
	if err := r.api.Get(ctx, req.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if secret.Type != corev1.SecretTypeServiceAccountToken || secret.DeletionTimestamp != nil || ptr.Deref(secret.Immutable, false) {
		return reconcile.Result{}, nil
	}
	key := client.ObjectKey{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]}
	if err := r.api.Get(ctx, key, account); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read ServiceAccount %q: %w", key, err)
	} else if err != nil {
		return reconcile.Result{}, nil // kube-controller-manager deletes the Secret
	}
	changed := secret.DeepCopy()
	decide(changed, refuses(account))
	if apiequality.Semantic.DeepEqual(secret, changed) {
		return reconcile.Result{}, nil
	}
	err := r.client.Patch(ctx, changed, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return kube.Result(fmt.Errorf("patch Secret %q: %w", req.NamespacedName, err))
	}
	return reconcile.Result{}, nil
}

// decide changes a Secret. When the token may be valid again, it is removed, for kube-controller-manager to issue one.
func decide(secret *corev1.Secret, refused bool) {
	switch {
	case refused:
		metav1.SetMetaDataLabel(&secret.ObjectMeta, resourcesv1alpha1.TokenInvalidatorConsider, "true")
		Invalidate(secret)
	case Considered(secret):
		delete(secret.Labels, resourcesv1alpha1.TokenInvalidatorConsider)
		delete(secret.Data, corev1.ServiceAccountTokenKey)
	}
}
