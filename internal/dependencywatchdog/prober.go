package dependencywatchdog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	component "gardener.cloud/gardener/internal/component/dependencywatchdog"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/decoded"
	"gardener.cloud/gardener/pkg/extension"
)

const (
	// throttledDelay is the pause after the kube-apiserver of a shoot has rejected a request because it has too many.
	throttledDelay = 10 * time.Second
	// passTimeout is the end of a pass, besides its requests to the shoot.
	passTimeout = time.Minute
)

// proberValues are what the prober works with.
type proberValues struct {
	// Config is its configuration, which is valid.
	Config component.ProberConfig
	// SeedAPI writes to the seed, and SeedReader reads from its API: there is one read of each object per interval, and caches would have to keep all.
	SeedAPI    client.Client
	SeedReader client.Reader
	// Connect returns the client for a shoot with a kubeconfig.
	Connect func(kubeconfig []byte, timeout time.Duration) (kubernetes.Interface, error)
	Clock   clock.PassiveClock
	// ConcurrentReconciles is how many shoots are probed at once.
	ConcurrentReconciles int
}

// addProber adds the controller. Its requests are Clusters; of these, the cache has the metadata only.
func addProber(mgr manager.Manager, v proberValues) error {
	return builder.ControllerManagedBy(mgr).Named("prober").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentReconciles}).
		For(&extensionsv1alpha1.Cluster{}, builder.OnlyMetadata).
		Complete(&proberReconciler{proberValues: v})
}

type proberReconciler struct {
	proberValues
	// seen are the Clusters that are probed. The first probe of a shoot has a delay: its nodes may only just be there.
	seen sync.Map
}

// connect returns the client for a shoot. Connections are shared by all clients with the same CA.
func connect(kubeconfig []byte, timeout time.Duration) (kubernetes.Interface, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig is not valid") // the decoder may quote it
	}
	config.Timeout = timeout
	decoded.LimitResponses(config, clientgoscheme.Scheme)
	return kubernetes.NewForConfig(config)
}

// Reconcile probes one shoot, and requeues it after the interval. Leases are read, not watched: that they are not renewed is no event.
func (r *proberReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout+r.Config.ProbeTimeout.Duration)
	defer cancel()
	cluster, err := extension.ReadCluster(ctx, r.SeedReader, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if cluster == nil || !component.Probed(cluster.Shoot) {
		r.seen.Delete(req.Name)
		return reconcile.Result{}, nil
	}
	first := r.Clock.Now()
	if since, ok := r.seen.LoadOrStore(req.Name, first); ok {
		first = since.(time.Time) //nolint:forcetypeassert // nothing else is stored
	}
	if wait := r.Config.InitialDelay.Duration - r.Clock.Since(first); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	log := logf.FromContext(ctx)
	to, err := r.probe(ctx, req.Name, cluster)
	next := reconcile.Result{RequeueAfter: r.interval()}
	switch {
	case throttled(err):
		log.Info("Pausing, as the kube-apiserver of the shoot has too many requests")
		return reconcile.Result{RequeueAfter: throttledDelay}, nil
	case unavailable(err): // the reason is not the network of the nodes, and controllers cannot reach it either
		log.V(1).Info("Not scaling, as the kube-apiserver of the shoot is not available", "reason", err.Error())
		return next, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	after, err := r.scale(ctx, req.Name, to)
	if after > 0 {
		next.RequeueAfter = min(next.RequeueAfter, after)
	}
	return next, err
}

// interval returns the time until the next probe. It varies, so that not all shoots are probed at once.
func (r *proberReconciler) interval() time.Duration {
	d := r.Config.ProbeInterval.Duration
	return d + time.Duration(rand.Float64()*ptr.Deref(r.Config.BackoffJitterFactor, 0)*float64(d)) //nolint:gosec // not for secrets
}

// probe asks the kube-apiserver of a shoot for nodes and their Leases, and returns how its controllers are scaled.
func (r *proberReconciler) probe(ctx context.Context, namespace string, cluster *extension.Cluster) (direction, error) {
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: namespace, Name: r.Config.KubeConfigSecretName}
	if err := r.SeedReader.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return stay, nil // the gardenlet creates it with the next reconciliation of the shoot
		}
		return stay, fmt.Errorf("read Secret %q: %w", key, err)
	}
	shoot, err := r.Connect(secret.Data["kubeconfig"], r.Config.ProbeTimeout.Duration)
	if err != nil {
		return stay, fmt.Errorf("connect with Secret %q: %w", key, err)
	}
	if _, err := shoot.Discovery().ServerVersion(); err != nil {
		return stay, err
	}
	nodes, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return stay, fmt.Errorf("list Nodes of the shoot: %w", err)
	}
	leases, err := shoot.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return stay, fmt.Errorf("list Leases of nodes of the shoot: %w", err)
	}
	machines := &machinev1alpha1.MachineList{}
	if err := r.SeedReader.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return stay, fmt.Errorf("list Machines: %w", err)
	}
	grace := r.Config.KCMNodeMonitorGraceDuration.Duration
	if c := cluster.Shoot.Spec.Kubernetes.KubeControllerManager; c != nil && c.NodeMonitorGracePeriod != nil {
		grace = c.NodeMonitorGracePeriod.Duration
	}
	return judge(nodes.Items, leases.Items, machines.Items, grace, *r.Config.NodeLeaseFailureFraction, r.Clock.Now()), nil
}

// throttled reports whether a kube-apiserver has too many requests.
func throttled(err error) bool { return apierrors.IsTooManyRequests(err) }

// unavailable reports whether a kube-apiserver did not respond, or could not.
func unavailable(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) || errors.Is(err, kube.ErrTooLarge) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsUnauthorized(err)
}

// scale scales the controllers of a shoot, and returns when it has to go on, or zero.
func (r *proberReconciler) scale(ctx context.Context, namespace string, to direction) (time.Duration, error) {
	if to == stay {
		return 0, nil
	}
	var dependents []dependent
	for _, resource := range r.Config.DependentResourceInfos {
		deployment, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: namespace, Name: resource.Ref.Name}
		if err := r.SeedReader.Get(ctx, key, deployment); apierrors.IsNotFound(err) && resource.Optional {
			continue
		} else if err != nil {
			return 0, fmt.Errorf("read Deployment %q: %w", key, err)
		}
		dependents = append(dependents, dependent{resource, deployment})
	}
	act, after := scale(dependents, to, r.Clock.Now())
	for _, deployment := range act {
		before := deployment.DeepCopy()
		scaled(deployment, to)
		logf.FromContext(ctx).Info("Scaling Deployment", "deployment", klog.KObj(deployment), "direction", to, "replicas", *deployment.Spec.Replicas)
		if err := r.SeedAPI.Patch(ctx, deployment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return 0, fmt.Errorf("scale Deployment %q: %w", klog.KObj(deployment), err)
		}
	}
	return after, nil
}

// scaled changes a Deployment. One that is scaled down remembers how many pods it had.
func scaled(deployment *appsv1.Deployment, to direction) {
	if to == up {
		component.ScaleUp(deployment)
		return
	}
	metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, component.AnnotationReplicas, strconv.Itoa(int(ptr.Deref(deployment.Spec.Replicas, 1))))
	metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, constants.DependencyWatchdogMeltdownProtectionActive, "")
	deployment.Spec.Replicas = new(int32(0))
}
