package plant

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/turns"
)

const (
	// kubeconfigKey is the key of Secrets with the kubeconfig.
	kubeconfigKey = "kubeconfig"
	// checkTimeout is the end of all requests to a cluster in one pass. A slow one takes a worker from others for that long; it is a third of the
	// default sync period, and enough for thousands of nodes.
	checkTimeout = 10 * time.Second
)

// reconciler checks the clusters of Plants.
type reconciler struct {
	Values
	gardenCache client.Client
	// gardenAPI reads Secrets, of which the cache has only metadata, and Plants: a pass would compare with a status that is outdated.
	gardenAPI client.Reader
	recorder  events.EventRecorder

	turns  turns.Turns
	pauses pauses
}

// Reconcile checks the cluster of a Plant and writes its status if it differs, when its namespace has a turn.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	// Without it, Plants that were created since the start would always go before those that are older, which the initial list has enqueued with a low priority.
	defer func() { result.Priority = new(handler.LowPriority) }()
	if !r.turns.Take(req.Namespace, checksPerNamespace) {
		return reconcile.Result{RequeueAfter: retryTurn}, nil
	}
	defer r.turns.Give(req.Namespace)
	return r.check(ctx, req)
}

func (r *reconciler) check(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	plant := &corev1beta1.Plant{}
	if err := r.gardenAPI.Get(ctx, req.NamespacedName, plant); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	} else if err != nil || plant.DeletionTimestamp != nil {
		r.pauses.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	secret, err := r.readSecret(ctx, plant)
	if err != nil {
		return reconcile.Result{}, err
	}
	o := r.observe(ctx, plant, secret)
	if err := r.report(ctx, plant, o); err != nil {
		return kube.Result(fmt.Errorf("write status of Plant %q: %w", req, err))
	}
	return reconcile.Result{RequeueAfter: r.pauses.next(req.NamespacedName, checkedOf(plant, secret), o.answered(), r.SyncPeriod)}, nil
}

// readSecret reads the Secret of a Plant. It is nil if it does not exist.
func (r *reconciler) readSecret(ctx context.Context, plant *corev1beta1.Plant) (*corev1.Secret, error) {
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: plant.Namespace, Name: plant.Spec.SecretRef.Name}
	if err := r.gardenAPI.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // without a Secret, there is something to report
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", key, err)
	}
	return secret, nil
}

// observe checks the cluster of a Plant, with the kubeconfig in a Secret, which is nil if it does not exist.
func (r *reconciler) observe(ctx context.Context, plant *corev1beta1.Plant, secret *corev1.Secret) *observed {
	name := plant.Spec.SecretRef.Name
	if secret == nil {
		return &observed{kubeconfigProblem: fmt.Sprintf("Secret %q does not exist.", name)}
	}
	data := secret.Data[kubeconfigKey]
	if len(data) == 0 {
		return &observed{kubeconfigProblem: fmt.Sprintf("Secret %q has no key %q.", name, kubeconfigKey)}
	}
	c, err := connect(data, r.Blocked)
	if err != nil {
		return &observed{kubeconfigProblem: cut(fmt.Sprintf("The kubeconfig in Secret %q cannot be used: %v", name, err))}
	}
	defer c.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	o := c.check(ctx)
	// What exactly went wrong is for operators only. It is what the server of a tenant wants to be read.
	if err := errors.Join(o.healthzError, o.versionError, o.nodesError); err != nil {
		logf.FromContext(ctx).V(1).Info("Checking the cluster failed", "cause", cut(err.Error()))
	}
	return o
}
