package process

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// PodNameEnv is the environment variable with the name of the pod that a process runs in. With it, a process that crashed leads again as
// soon as it restarts; without it, no process leads until the Lease has expired.
const PodNameEnv = "POD_NAME"

// releaseOwnLease releases the Lease that the container held before it crashed: a pod has only one such container, so no process leads.
func releaseOwnLease(ctx context.Context, config *rest.Config, election *componentbaseconfigv1alpha1.LeaderElectionConfiguration, log logr.Logger) error {
	pod := os.Getenv(PodNameEnv) //nolint:forbidigo // the wiring is where it is read
	// The identity of a leader begins with the host name, which is not unique if it is that of a node.
	if host, err := os.Hostname(); err != nil || pod == "" || pod != host {
		return err
	}
	c, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client for Leases: %w", err)
	}
	leases := c.Leases(election.ResourceNamespace)
	lease, err := leases.Get(ctx, election.ResourceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Lease %q: %w", election.ResourceName, err)
	}
	if lease.Spec.HolderIdentity == nil || !strings.HasPrefix(*lease.Spec.HolderIdentity, pod+"_") {
		return nil
	}
	log.Info("Releasing the leadership of the crashed predecessor", "lease", election.ResourceName, "holder", *lease.Spec.HolderIdentity)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("release Lease %q: %w", election.ResourceName, err)
	}
	return nil
}
