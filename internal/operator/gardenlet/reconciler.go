package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/skew"
	"gardener.cloud/gardener/pkg/helm"
)

// passTimeout is the end of a pass: most of it is for pulling the chart.
const passTimeout = 3 * time.Minute

type reconciler struct {
	Values
	virtualCache  client.Client
	virtualAPI    client.Reader
	runtimeCache  client.Client
	runtimeAPI    client.Reader
	runtimeConfig *rest.Config
	charts        *chart.Puller
}

// Reconcile deploys a gardenlet, and finishes when it has registered its Seed.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	object := &seedmanagementv1alpha1.Gardenlet{}
	// The cache may not have the status yet that the last pass has written.
	if err := r.virtualAPI.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	seed, err := r.seed(ctx, object.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	v := decide(object, seed)
	if v.Refuse {
		return kube.Result(r.writeCondition(ctx, object, failed(errUnapproved)))
	}
	if ofSeed(object) {
		// Before the reference to the kubeconfig is cleared.
		if err := r.recordPlacement(ctx, object, seed); err != nil {
			return kube.Result(err)
		}
	}
	issued := false // whether the gardenlet has a new bootstrap token
	if v.Deploy {
		logf.FromContext(ctx).Info("Deploying gardenlet")
		if issued, err = r.deploy(ctx, object); err != nil {
			// A kubeconfig that was deleted with the Seed there is that of an earlier pass, which ended before the reference was cleared.
			if !v.Finish || !errors.Is(err, errKubeconfigGone) {
				return kube.Result(kube.Reported(err, r.writeCondition(ctx, object, failed(err))))
			}
		}
	}
	switch {
	case v.Finish:
		return kube.Result(r.finish(ctx, object, issued))
	case v.Deploy:
		if err := r.writeCondition(ctx, object, waiting(object.Name)); err != nil {
			return kube.Result(err)
		}
		return reconcile.Result{RequeueAfter: v.Again}, nil // the watch for Seeds continues before
	}
	return reconcile.Result{}, nil
}

// seed returns a Seed, or nil if it does not exist.
func (r *reconciler) seed(ctx context.Context, name string) (*corev1beta1.Seed, error) {
	seed := &corev1beta1.Seed{}
	if err := r.virtualCache.Get(ctx, client.ObjectKey{Name: name}, seed); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Seed %q: %w", name, err)
	}
	return seed, nil
}

// deploy deploys a gardenlet to its cluster. It returns whether the gardenlet has a bootstrap token now, with which it requests a certificate.
func (r *reconciler) deploy(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) (issued bool, err error) {
	t, err := r.target(ctx, object)
	if err != nil {
		return false, err
	}
	config, err := release.ReadConfiguration(object)
	if err != nil {
		return false, reconcile.TerminalError(err)
	}
	gardenObject, err := r.garden(ctx)
	if err != nil {
		return false, err
	}
	garden, err := config.Connect("https://api." + gardenObject.Spec.VirtualCluster.DNS.Domains[0].Name)
	if err != nil {
		return false, reconcile.TerminalError(err)
	}
	if t.runtime {
		err = r.placeInRuntime(ctx, object.Name, gardenObject)
	} else {
		err = t.refuseOther(ctx, object.Name)
	}
	if err != nil {
		return false, err
	}
	version, err := t.version.ServerVersion()
	if err != nil {
		return false, t.foreign(fmt.Errorf("read version of the cluster: %w", err))
	}
	archive, err := r.charts.PullFor(ctx, r.virtualAPI, &object.Spec.Deployment.Helm.OCIRepository)
	if err != nil {
		return false, &foreignError{"the chart of spec.deployment.helm.ociRepository cannot be pulled", err}
	}
	with, err := r.valuesFor(ctx, t, archive)
	if err != nil {
		return false, err
	}
	values, err := with.Chart(object, config)
	if err != nil {
		return false, reconcile.TerminalError(err)
	}
	// Errors of charts quote values. What is wrong with them is found before they have credentials, and before anything is changed. They are tried
	// again, as another chart may be pushed with the same tag.
	if _, err := release.Objects(archive, *version, values); err != nil {
		return false, err
	}
	if !t.runtime {
		if err := t.ensureNamespace(ctx); err != nil {
			return false, t.foreign(err)
		}
	}
	kubeconfig, err := r.bootstrap(ctx, t, object, garden)
	if err != nil {
		return false, err
	}
	if len(kubeconfig) > 0 {
		if err := config.Set(string(kubeconfig), "gardenClientConnection", "bootstrapKubeconfig", "kubeconfig"); err != nil {
			return false, reconcile.TerminalError(err)
		}
	}
	objects, err := release.Objects(archive, *version, values)
	if err != nil {
		return false, errors.New("the chart cannot be rendered with a bootstrap kubeconfig")
	}
	return len(kubeconfig) > 0, t.foreign(kube.Apply(ctx, t.client, release.FieldOwner, objects...))
}

// valuesFor returns what the gardenlet of a chart is deployed with. The image and the overwrites of the operator are those of its own release. With the chart
// of another one, in which the gardenlet may have other permissions and flags, the gardenlet gets what it gets when it updates itself: the image of the chart,
// or the one that runs with it, and the overwrites that run.
func (r *reconciler) valuesFor(ctx context.Context, t *target, archive []byte) (release.Values, error) {
	values := release.Values{
		Image: r.Image, ImageVectorOverwrite: r.ImageVectorOverwrite, ComponentImageVectorOverwrites: r.ComponentImageVectorOverwrites, HostsGarden: t.runtime,
	}
	of, err := helm.AppVersion(archive)
	if err != nil {
		return release.Values{}, err // as with values, another chart may be pushed with the same tag
	}
	if skew.Same(of, r.Version) {
		return values, nil
	}
	running, err := release.ReadRunning(ctx, t.api)
	if err != nil {
		return release.Values{}, t.foreign(err)
	}
	values.Image = ""
	if running.Chart == workload.Checksum(string(archive)) {
		values.Image = running.Image
	}
	if running.Image != "" {
		values.ImageVectorOverwrite, values.ComponentImageVectorOverwrites = running.ImageVectorOverwrite, running.ComponentImageVectorOverwrites
	}
	return values, nil
}

// garden returns the Garden, which has a domain.
func (r *reconciler) garden(ctx context.Context) (*operatorv1alpha1.Garden, error) {
	gardens := &operatorv1alpha1.GardenList{}
	if err := r.runtimeCache.List(ctx, gardens); err != nil {
		return nil, fmt.Errorf("list Gardens: %w", err)
	}
	if len(gardens.Items) != 1 || len(gardens.Items[0].Spec.VirtualCluster.DNS.Domains) == 0 {
		return nil, fmt.Errorf("there are %d Gardens with a domain, and not one", len(gardens.Items))
	}
	return &gardens.Items[0], nil
}

// refuseOther returns an error if the gardenlet of another seed runs in the cluster.
func (t *target) refuseOther(ctx context.Context, seed string) error {
	found, err := release.RunsIn(ctx, t.api)
	if err != nil {
		return t.foreign(err)
	}
	if found.Seed != "" && found.Seed != seed {
		return fmt.Errorf("the gardenlet of another seed already runs in the cluster: it cannot be seed %q too", seed)
	}
	return nil
}

// finish deletes the kubeconfig of a cluster whose Seed exists, the bootstrap token unless it has just been issued, and what requested the deployment. The
// condition comes after what is deleted, and before what requested it: each of them lets a pass that was interrupted finish later.
func (r *reconciler) finish(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet, issued bool) error {
	if err := r.deleteKubeconfig(ctx, object); err != nil {
		return err
	}
	if !issued {
		if err := tokenOf(object).Delete(ctx, r.virtualAPI, r.virtualCache); err != nil {
			return err
		}
	}
	if err := r.writeCondition(ctx, object, registered(object.Name)); err != nil {
		return err
	}
	after := object.DeepCopy()
	after.Spec.KubeconfigSecretRef = nil
	switch after.Annotations[constants.GardenerOperation] {
	case constants.OperationForceRedeploy, constants.GardenerOperationRenewKubeconfig:
		delete(after.Annotations, constants.GardenerOperation)
	}
	// What was requested during the pass is for the next one.
	if err := r.virtualCache.Patch(ctx, after, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch Gardenlet %q: %w", object.Name, err)
	}
	return nil
}

// deleteKubeconfig deletes the Secret to which a Gardenlet refers. A Secret that has no kubeconfig for its cluster is another one, and stays.
func (r *reconciler) deleteKubeconfig(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) error {
	ref := object.Spec.KubeconfigSecretRef
	if ref == nil {
		return nil
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: object.Namespace, Name: ref.Name}
	if err := r.virtualAPI.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read Secret %q, to which spec.kubeconfigSecretRef refers: %w", key, err)
	}
	if _, err := r.restConfig(secret.Data[kubeconfigKey]); err != nil {
		logf.FromContext(ctx).Info("Keeping Secret to which spec.kubeconfigSecretRef refers, as it has no valid kubeconfig", "secret", klog.KObj(secret))
		return nil
	}
	if err := kube.DeleteUnchanged(ctx, r.virtualCache, secret); err != nil {
		return fmt.Errorf("delete Secret %q, to which spec.kubeconfigSecretRef refers: %w", key, err)
	}
	return nil
}
