package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/operator/virtualcluster"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// guardTask is the ID of the first task of a deletion.
	guardTask = "garden-unused"
	// listTimeout is how long Seeds and Shoots may take to be listed, and guardTimeout how long the whole task: discovery does not end with its context, and
	// a forced deletion continues after a list that has timed out.
	listTimeout, guardTimeout = 30 * time.Second, 2 * time.Minute
)

// guarded has all tasks of a deletion wait until it is certain that the virtual garden is not used. The webhook has checked it before, but Seeds may have been
// created since, or there was no webhook.
func (s *state) guarded(tasks []flow.Task) []flow.Task {
	guard := flow.Await(guardTimeout, guardTask, "Checking that the virtual garden has neither Seeds nor Shoots", s.checkUnused)
	guarded := []flow.Task{guard}
	for _, task := range tasks {
		if len(task.After) == 0 {
			task.After = []string{guard.ID}
		}
		guarded = append(guarded, task)
	}
	return guarded
}

// checkUnused returns an error while the virtual garden has Seeds or Shoots: without it, their machines and load balancers would stay and cost money, and
// nothing could delete them. If the virtual garden does not respond and the deletion is forced, it releases the ManagedResources of the virtual cluster, also
// those of extensions: the resource manager cannot delete their objects, and all that follows would wait for it.
func (s *state) checkUnused(ctx context.Context) error {
	begun, err := s.deletionBegun(ctx)
	if err != nil {
		return err
	}
	forced := s.garden.Annotations[operatorv1alpha1.ForceDeletion] == "true"
	if begun && !forced {
		return nil
	}
	remaining, err := s.remaining(ctx)
	switch {
	case err != nil && forced:
		logf.FromContext(ctx).Info("Deleting the Garden without a check for Seeds and Shoots", "annotation", operatorv1alpha1.ForceDeletion, "reason", err.Error())
		return s.deleteVirtualResources(ctx)
	case begun:
		return nil
	case err != nil:
		return fmt.Errorf("the virtual garden cannot be checked for Seeds and Shoots: %w; to delete the Garden all the same, annotate it with %s=true",
			err, operatorv1alpha1.ForceDeletion)
	case len(remaining) > 0:
		return fmt.Errorf("the virtual garden still has %s; delete Shoots and Seeds first", strings.Join(remaining, ", "))
	}
	return nil
}

// deletionBegun is whether a former run of this flow has made the check and gone as far as to gardener-apiserver, which does not respond any more then, or
// whether it was never registered.
func (s *state) deletionBegun(ctx context.Context) (bool, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: virtualResource(gardenerapiserver.Name)}
	if err := s.RuntimeAPI.Get(ctx, key, mr); apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read ManagedResource %q: %w", key.Name, err)
	}
	return mr.DeletionTimestamp != nil, nil
}

func (s *state) remaining(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	virtual, err := s.run.Target.Client(ctx)
	if err != nil {
		return nil, err
	}
	return virtualcluster.ListRemaining(ctx, virtual)
}
