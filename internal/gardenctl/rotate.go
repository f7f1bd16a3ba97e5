package gardenctl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// rotation has the operations that rotate one kind of credentials. Empty ones do not exist.
type rotation struct{ start, startWithoutRollout, complete string }

// everything is the kind that is rotated by default.
const everything = "all"

var rotations = map[string]rotation{
	everything: {
		constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout,
		constants.OperationRotateCredentialsComplete,
	},
	"ca": {
		constants.OperationRotateCAStart, constants.OperationRotateCAStartWithoutWorkersRollout, constants.OperationRotateCAComplete,
	},
	"service-account-key": {
		constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		constants.OperationRotateServiceAccountKeyComplete,
	},
	"etcd-encryption-key": {start: constants.OperationRotateETCDEncryptionKey},
	"ssh-keypair":         {start: constants.OperationRotateSSHKeypair},
	"observability":       {start: constants.OperationRotateObservabilityCredentials},
}

type rotateFlags struct {
	only                     string
	complete, withoutRollout bool
	pools                    []string
}

// operation returns the operation for the flags.
func (f *rotateFlags) operation() (operation, error) {
	r, ok := rotations[f.only]
	kinds := strings.Join(slices.Sorted(maps.Keys(rotations)), ", ")
	o := operation{refuse: notDeleted, state: "prepared", done: "rotation of credentials requested", reached: rotated}
	switch {
	case !ok:
		return o, fmt.Errorf("--only must be one of %s, not %q", kinds, f.only)
	case f.pools != nil && len(f.pools) == 0: // --pools=$UNSET
		return o, errors.New("--pools is empty: name the worker pools whose nodes are to be replaced")
	case len(f.pools) > 0 && (f.complete || f.withoutRollout):
		return o, errors.New("--pools excludes --complete and --without-workers-rollout: it rolls out nodes during a rotation")
	case f.complete && f.withoutRollout:
		return o, errors.New("--without-workers-rollout is for the first step, and excludes --complete")
	case len(f.pools) > 0:
		o.name, o.done, o.state = constants.OperationRotateRolloutWorkers+"="+strings.Join(f.pools, ","), "rollout of nodes requested", "reconciled"
	case f.complete:
		o.name, o.done, o.state = r.complete, "completion of the rotation requested", "rotated"
	case f.withoutRollout:
		o.name = r.startWithoutRollout
	default:
		o.name = r.start
	}
	if o.name == "" {
		return o, fmt.Errorf("%s is rotated in one step and rolls out no nodes: leave out --complete and --without-workers-rollout", f.only)
	}
	if r.complete == "" {
		o.state = "rotated"
	}
	return o, nil
}

func (c *cli) rotateCommand() *cobra.Command {
	var flags rotateFlags
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "rotate [shoot] [NAME]", Short: "Rotate the credentials of a shoot", Args: cobra.MaximumNArgs(2),
		Long: c.examples(`rotate shoot my-cluster --wait                     # creates new credentials, and rolls out nodes; the old ones stay valid
  PROGRAM rotate shoot my-cluster --complete --wait          # when all clients have new ones: the old ones end
  PROGRAM rotate shoot my-cluster --only=etcd-encryption-key # in one step, as ssh-keypair and observability
  PROGRAM rotate shoot my-cluster --without-workers-rollout  # nodes are replaced when you say:
  PROGRAM rotate shoot my-cluster --pools=a,b`) + `
Between the two steps, distribute new kubeconfigs. "` + c.program() + ` describe shoot" shows the progress.`,
		ValidArgsFunction: c.completeShoot,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.operation()
			if err != nil {
				return err
			}
			p, r, err := c.operate(cmd.Context(), o, args)
			if err != nil || !wait {
				return err
			}
			if err := c.await(cmd.Context(), p, goal{o.state, func(shoot *corev1beta1.Shoot) error { return o.reached(r, shoot) }}, timeout); err != nil {
				return err
			}
			if o.state == "prepared" && !flags.withoutRollout {
				fmt.Fprintf(c.ErrOut, "the old credentials stay valid; when all clients have new ones, invalidate the old ones with: %s rotate shoot %s -n %s --complete%s\n",
					c.program(), p.name, p.namespace, onlyFlag(flags.only))
			}
			return nil
		},
	}
	kinds := slices.Sorted(maps.Keys(rotations))
	cmd.Flags().StringVar(&flags.only, "only", everything, "which credentials to rotate: "+strings.Join(kinds, ", "))
	cmd.Flags().BoolVar(&flags.complete, "complete", false, "complete a prepared rotation, which invalidates the old credentials")
	cmd.Flags().BoolVar(&flags.withoutRollout, "without-workers-rollout", false, "roll out no nodes before a command with --pools")
	cmd.Flags().StringSliceVar(&flags.pools, "pools", nil, "worker pools to roll out now, in a rotation that waits for it")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the step is done")
	cmd.Flags().DurationVar(&timeout, "timeout", waitTimeout, "how long to wait")
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func onlyFlag(kind string) string {
	if kind == everything {
		return ""
	}
	return " --only=" + kind
}

func notDeleted(shoot *corev1beta1.Shoot, _ string) error {
	if shoot.DeletionTimestamp != nil {
		return errors.New("it is being deleted")
	}
	return nil
}

// rotated returns what is missing for a step of a rotation. A step may take more than one reconciliation.
func rotated(r request, shoot *corev1beta1.Shoot) error {
	if err := reconciled(shoot, r.generation); err != nil {
		return err
	}
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
		return nil
	}
	rotation := shoot.Status.Credentials.Rotation
	phases := map[string]corev1beta1.CredentialsRotationPhase{}
	if rotation.CertificateAuthorities != nil {
		phases["CAs"] = rotation.CertificateAuthorities.Phase
	}
	if rotation.ServiceAccountKey != nil {
		phases["service account key"] = rotation.ServiceAccountKey.Phase
	}
	if rotation.ETCDEncryptionKey != nil {
		phases["etcd encryption key"] = rotation.ETCDEncryptionKey.Phase
	}
	for _, what := range slices.Sorted(maps.Keys(phases)) {
		switch phase := phases[what]; phase {
		case corev1beta1.RotationPreparing, corev1beta1.RotationPreparingWithoutWorkersRollout, corev1beta1.RotationCompleting:
			return fmt.Errorf("%s: %s", what, phase)
		case corev1beta1.RotationPrepared, corev1beta1.RotationWaitingForWorkersRollout, corev1beta1.RotationCompleted:
		}
	}
	return nil
}
