package system

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/internal/stage/foundation"
	"gardener.cloud/gardener/pkg/flow"
)

// extensions are the Extensions of a seed for itself: those it has, and those that exist although it has them no longer.
type extensions struct {
	desired, stale []extension.Extension
}

// observeExtensions reads the Extensions that a Seed has. A deleted Seed has none: all of them are stale.
func (r *reconciler) observeExtensions(ctx context.Context, seed *corev1beta1.Seed) (extensions, error) {
	registrations, existing, e := &corev1beta1.ControllerRegistrationList{}, &extensionsv1alpha1.ExtensionList{}, extensions{}
	if err := r.gardenCache.List(ctx, registrations); err != nil {
		return e, fmt.Errorf("list ControllerRegistrations: %w", err)
	}
	if seed.DeletionTimestamp == nil {
		e.desired = extension.DesiredForSeed(seed, registrations.Items)
	}
	// The flow deploys the kinds of extensions, so they may not exist yet.
	if err := r.SeedAPI.List(ctx, existing, client.InNamespace(constants.GardenNamespace)); err != nil && !meta.IsNoMatchError(err) {
		return e, fmt.Errorf("list Extensions: %w", err)
	}
	var own []extensionsv1alpha1.Extension
	for i := range existing.Items {
		if extensionobject.OfSeed(&existing.Items[i]) {
			own = append(own, existing.Items[i])
		}
	}
	e.stale = extension.Stale(own, e.desired, registrations.Items)
	return e, nil
}

// stageRun is what tasks of stages work with.
func (s *run) stageRun() *stage.Run {
	return &stage.Run{
		SeedAPI: s.SeedAPI, GardenCache: s.gardenCache, GardenAPI: s.GardenAPI, Namespace: constants.GardenNamespace, Name: s.seed.Name,
		FieldManager: fieldManager, Clock: s.Clock, Controller: s.controller,
	}
}

// controller returns the ControllerInstallation that is responsible for a kind and type on the seed.
func (s *run) controller(ctx context.Context, kind, typ string) (*corev1beta1.ControllerInstallation, error) {
	return extensionobject.ReadResponsible(ctx, s.gardenCache, kind, typ, s.seed.Name)
}

// references are the objects that spec.resources of the Seed names. Their copies have a label of the seed, as the namespace garden has more
// objects with their role where the seed is the cluster of the garden, too.
func (s *run) references() foundation.References {
	return foundation.References{
		Run: s.stageRun(), Namespace: constants.GardenNamespace, Resources: s.seed.Spec.Resources,
		Deleting: s.seed.DeletionTimestamp != nil,
		Owner: securityv1alpha1.ContextObject{
			Kind: "Seed", APIVersion: corev1beta1.SchemeGroupVersion.String(), Name: s.seed.Name, UID: s.seed.UID,
		},
		Labels: map[string]string{constants.PrefixSeedName + s.seed.Name: "true"},
	}
}

// extensionTasks are the tasks of the Extensions, and of the objects that they refer to.
func (s *run) extensionTasks(e extensions) []flow.Task {
	tasks := []flow.Task{
		flow.Do("references", "Copying referenced resources", func(ctx context.Context) error { return s.references().Copy(ctx) }).IfPresent("namespace"),
	}
	// Also if nothing changed in the Extension: what it refers to may have, or an operator has requested it.
	values := extensionobject.Values{Client: s.SeedAPI, Clock: s.Clock, Always: true, Controller: s.controller}
	used := []string{"references"}
	for _, e := range e.desired {
		task := flow.Await(cmp.Or(e.Timeout, waitTimeout), extension.ID(e.Type), "Waiting for Extension "+e.Type, func(ctx context.Context) error {
			obj := e.Object(constants.GardenNamespace)
			if err := extensionobject.Apply(ctx, values, obj, func(obj *extensionsv1alpha1.Extension) {
				obj.Spec.DefaultSpec = stage.DefaultSpec(new(extensionsv1alpha1.ExtensionClassSeed), e.Type, e.Config)
			}); err != nil {
				return err
			}
			return extensionobject.Await(ctx, values, obj)
		}, "references").IfPresent("crds-extensions", "resource-manager-ready")
		tasks, used = append(tasks, task), append(used, task.ID)
	}
	for _, e := range e.stale {
		task := extension.Deletion(s.stageRun(), e).IfPresent("crds-extensions")
		tasks, used = append(tasks, task), append(used, task.ID)
	}
	return append(tasks, flow.Do("references-cleanup", "Deleting unused copies of referenced resources", func(ctx context.Context) error {
		return s.references().DeleteStale(ctx)
	}, used...))
}

// newExtensionDeletion returns the flow that deletes what extensions have to delete, while their controllers still run: the Extensions and the
// BackupBucket of the Seed.
func (r *reconciler) newExtensionDeletion(seed *corev1beta1.Seed, e extensions) (*flow.Flow, error) {
	s := r.newRun(seed)
	tasks := []flow.Task{flow.Await(waitTimeout, "backup-bucket", "Deleting the BackupBucket", s.deleteBackupBucket)}
	used := []string{"backup-bucket"}
	for _, e := range e.stale {
		task := extension.Deletion(s.stageRun(), e)
		tasks, used = append(tasks, task), append(used, task.ID)
	}
	tasks = append(tasks, flow.Do("references", "Deleting copies of referenced resources", func(ctx context.Context) error {
		references := s.references()
		references.Resources = nil
		return references.DeleteStale(ctx)
	}, used...))
	return flow.New("Seed deletion of extensions", tasks...)
}
