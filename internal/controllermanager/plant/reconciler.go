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
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
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
}

// Reconcile checks the cluster of a Plant and writes its status if it differs.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	plant := &corev1beta1.Plant{}
	if err := r.gardenAPI.Get(ctx, req.NamespacedName, plant); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if plant.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	o, err := r.observe(ctx, plant)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.report(ctx, plant, o); err != nil {
		return kube.Result(fmt.Errorf("write status of Plant %q: %w", req, err))
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// observe checks the cluster of a Plant. Errors are those of the garden.
func (r *reconciler) observe(ctx context.Context, plant *corev1beta1.Plant) (*observed, error) {
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: plant.Namespace, Name: plant.Spec.SecretRef.Name}
	if err := r.gardenAPI.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return &observed{kubeconfigProblem: fmt.Sprintf("Secret %q does not exist.", key.Name)}, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", key, err)
	}
	data := secret.Data[kubeconfigKey]
	if len(data) == 0 {
		return &observed{kubeconfigProblem: fmt.Sprintf("Secret %q has no key %q.", key.Name, kubeconfigKey)}, nil
	}
	c, err := connect(data, r.Blocked)
	if err != nil {
		return &observed{kubeconfigProblem: cut(fmt.Sprintf("The kubeconfig in Secret %q cannot be used: %v", key.Name, err))}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	o := c.check(ctx)
	// What exactly went wrong is for operators only. It is what the server of a tenant wants to be read.
	if err := errors.Join(o.healthzError, o.versionError, o.nodesError); err != nil {
		logf.FromContext(ctx).V(1).Info("Checking the cluster failed", "cause", cut(err.Error()))
	}
	return o, nil
}
