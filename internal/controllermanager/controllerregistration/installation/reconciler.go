package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
)

// reader reads from the cache without copying the objects, as a reconciliation reads every shoot of a seed. The objects are not changed.
type reader struct{ gardenCache client.Client }

// seedReconciler keeps the ControllerInstallations of a Seed.
type seedReconciler struct {
	reader
	memory *memory
}

// Reconcile creates, updates and deletes the installations of a Seed as it needs them.
func (r *seedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.memory.delete(req.Name)
	seed := &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, seed, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ref := references.RefOf(references.Seed, seed)
	o := observed{seed: seed, needs: needs{sets.New[need]()}}
	if err := r.readCommon(ctx, &o, references.To(ref)); err != nil {
		return reconcile.Result{}, err
	}
	d, err := r.readDomains(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.addBackups(ctx, o.needs, references.To(ref)); err != nil {
		return reconcile.Result{}, err
	}
	shoots := &corev1beta1.ShootList{}
	if err := r.list(ctx, shoots, references.To(ref)); err != nil {
		return reconcile.Result{}, err
	}
	o.shoots = len(shoots.Items)
	d = d.forSeed(seed)
	forShoots := automatics(o.registrations, corev1beta1.ClusterTypeShoot)
	for i := range shoots.Items {
		o.needs.addShoot(&shoots.Items[i], seed, d, forShoots)
	}
	// The needs of a seed in deletion itself are dropped; installations stay while they are required.
	if seed.DeletionTimestamp == nil {
		o.needs.addSeed(seed, automatics(o.registrations, corev1beta1.ClusterTypeSeed))
	}
	if err := r.apply(ctx, decide(o)); err != nil {
		return reconcile.Result{}, err
	}
	r.memory.set(found{seed: seed, domains: d, automatics: forShoots, needs: o.needs, shoots: o.shoots})
	return reconcile.Result{}, nil
}

// shootReconciler keeps the ControllerInstallations of a self-hosted Shoot.
type shootReconciler struct{ reader }

// Reconcile creates, updates and deletes the installations of a self-hosted Shoot as it needs them.
func (r *shootReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !shoot.SelfHosted() {
		return reconcile.Result{}, nil
	}
	o := observed{shoot: shoot, shoots: 1, needs: needs{sets.New[need]()}}
	ref := references.To(references.RefOf(references.Shoot, shoot))
	if err := r.readCommon(ctx, &o, ref); err != nil {
		return reconcile.Result{}, err
	}
	d, err := r.readDomains(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.addBackups(ctx, o.needs, ref); err != nil {
		return reconcile.Result{}, err
	}
	if shoot.DeletionTimestamp == nil {
		o.needs.addSelfHosted(shoot, d.defaults, automatics(o.registrations, corev1beta1.ClusterTypeShoot))
	}
	return reconcile.Result{}, r.apply(ctx, decide(o))
}

func (r *reader) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.gardenCache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("list %T: %w", list, err)
	}
	return nil
}

// readCommon reads registrations, their deployments, and the installations of a cluster.
func (r *reader) readCommon(ctx context.Context, o *observed, cluster client.ListOption) error {
	registrations := &corev1beta1.ControllerRegistrationList{}
	installations := &corev1beta1.ControllerInstallationList{}
	if err := r.list(ctx, registrations); err != nil {
		return err
	}
	if err := r.list(ctx, installations, cluster); err != nil {
		return err
	}
	slices.SortFunc(registrations.Items, func(a, b corev1beta1.ControllerRegistration) int { return strings.Compare(a.Name, b.Name) })
	o.registrations, o.installations, o.deployments = registrations.Items, installations.Items, map[string]deployment{}
	for i := range o.registrations {
		for _, ref := range references.Of(&o.registrations[i], references.ControllerDeployment) {
			if err := r.readDeployment(ctx, ref.Name, o.deployments); err != nil {
				return err
			}
		}
	}
	return nil
}

// readDeployment reads a ControllerDeployment and the resource versions of the objects that it refers to, if they exist.
func (r *reader) readDeployment(ctx context.Context, name string, deployments map[string]deployment) error {
	object := &gardencorev1.ControllerDeployment{}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: name}, object, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read ControllerDeployment %q: %w", name, err)
	}
	d := deployment{resourceVersion: object.ResourceVersion, hash: hashOf(object)}
	for _, ref := range references.Of(object) {
		meta := kube.Metadata(corev1.SchemeGroupVersion.WithKind(ref.Kind))
		if err := r.gardenCache.Get(ctx, ref.ObjectKey(), meta); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("read %s %q: %w", ref.Kind, ref.Name, err)
		}
		d.resources = append(d.resources, corev1.ObjectReference{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, ResourceVersion: meta.ResourceVersion,
		})
	}
	deployments[name] = d
	return nil
}

// readDomains reads the domains of the garden from the metadata of their Secrets.
func (r *reader) readDomains(ctx context.Context) (domains, error) {
	var d domains
	for role, target := range map[string]*[]domain{constants.GardenRoleInternalDomain: &d.internal, constants.GardenRoleDefaultDomain: &d.defaults} {
		secrets := &metav1.PartialObjectMetadataList{}
		secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := r.list(ctx, secrets, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{constants.GardenRole: role}); err != nil {
			return d, err
		}
		for i := range secrets.Items {
			a := secrets.Items[i].Annotations
			*target = append(*target, domain{a[constants.DNSDomain], a[constants.DNSProvider]})
		}
	}
	return d, nil
}

// addBackups adds the needs of the buckets and entries of a cluster.
func (r *reader) addBackups(ctx context.Context, n needs, cluster client.ListOption) error {
	buckets, entries := &corev1beta1.BackupBucketList{}, &corev1beta1.BackupEntryList{}
	if err := r.list(ctx, buckets, cluster); err != nil {
		return err
	}
	if err := r.list(ctx, entries, cluster); err != nil {
		return err
	}
	var errs []error
	providers := map[string]string{}
	n.addBackups(buckets.Items, entries.Items, func(name string) string {
		if provider, ok := providers[name]; ok {
			return provider
		}
		bucket := &corev1beta1.BackupBucket{}
		if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: name}, bucket, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("read BackupBucket %q: %w", name, err))
		}
		providers[name] = bucket.Spec.Provider.Type
		return providers[name]
	})
	return errors.Join(errs...)
}

// apply executes a plan. Installations are deleted only after all others have been written: one of those may replace them.
func (r *reader) apply(ctx context.Context, p plan) error {
	log := logf.FromContext(ctx)
	for _, n := range p.unserved {
		log.V(1).Info("Finding no registration for a needed extension", "kind", n.kind, "type", n.typ)
	}
	var errs []error // installations of different registrations do not depend on each other
	for _, installation := range p.create {
		log.Info("Creating installation", "controllerInstallation", installation.Name, "registration", installation.Spec.RegistrationRef.Name)
		// It exists already if the cache is not up to date; the event that updates the cache causes another reconciliation.
		if err := r.gardenCache.Create(ctx, installation); err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("create ControllerInstallation %q: %w", installation.Name, err))
		}
	}
	for _, change := range p.update {
		before, after := change[0], change[1]
		log.Info("Updating installation", "controllerInstallation", after.Name, "registration", after.Spec.RegistrationRef.Name)
		if err := r.gardenCache.Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("update ControllerInstallation %q: %w", after.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, installation := range p.remove {
		log.Info("Deleting installation", "controllerInstallation", installation.Name, "registration", installation.Spec.RegistrationRef.Name)
		if err := r.gardenCache.Delete(ctx, installation, client.Preconditions{UID: &installation.UID}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete ControllerInstallation %q: %w", installation.Name, err))
		}
	}
	return errors.Join(errs...)
}
