package gardenctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// silence is for how long the gardenlet of a seed must not have renewed its Lease, which it does every few seconds, until the seed may be called lost.
const silence = 2 * time.Minute

// recovery is a request to recover shoots of a lost seed.
type recovery struct {
	lost, to string
	// shoots are the names of shoots with their namespaces. Without any, all shoots of the seed are recovered.
	shoots []string
	// abandon releases shoots that are being deleted, instead of restoring shoots on the other seed.
	abandon   bool
	yes, wait bool
	timeout   time.Duration
}

// recoverable is a shoot of a lost seed, and what is left of it in the garden.
type recoverable struct {
	shoot *corev1beta1.Shoot
	// state and entry are nil if they do not exist.
	state *corev1beta1.ShootState
	entry *corev1beta1.BackupEntry
}

func (c *cli) recoverCommand() *cobra.Command {
	r := recovery{}
	cmd := &cobra.Command{
		Use: "recover --seed=LOST (--to=SEED | --abandon)", Short: "Bring the shoots of a lost seed up on another one", Args: cobra.NoArgs,
		Long: c.examples(`recover --seed=seed-a --to=seed-b              # asks for confirmation
  PROGRAM recover --seed=seed-a --to=seed-b --yes --wait
  PROGRAM recover --seed=seed-a --to=seed-b --shoot=garden-dev/my-cluster
  PROGRAM recover --seed=seed-a --abandon --shoot=garden-dev/deleted`) + `
This is for a seed that is gone for good, with all control planes on it: a seed that is alive is left with "` + c.program() + ` migrate". The other seed restores
the control planes from the ShootStates in the garden and the latest backups of etcd, so what was written after them is lost. Nodes and their pods go on
running. It can be repeated at any time, and is refused while the gardenlet of the lost seed reports. Bastions on the lost seed are deleted without their
machines. A shoot that is being deleted cannot be restored: --abandon ends its deletion without deleting anything in its infrastructure, and prints what to look
for there. This is for operators: it needs permission to update shoots/binding, to patch shoots/status, backupentries and backupentries/status, to list shoots
and bastions, to get leases, seeds, backupentries and shootstates, to delete and patch bastions, and, for --abandon, shoots to patch, and backupentries and
shootstates to delete and patch.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.recoverShoots(cmd.Context(), r) },
	}
	flags := cmd.Flags()
	flags.StringVar(&r.lost, "seed", "", "the seed that is lost")
	flags.StringVar(&r.to, "to", "", "the seed that restores the control planes")
	flags.StringSliceVar(&r.shoots, "shoot", nil, "only this shoot, as NAMESPACE/NAME; can be repeated (default: all shoots of the seed)")
	flags.BoolVar(&r.abandon, "abandon", false, "end the deletion of the shoots given by --shoot; nothing is deleted in their infrastructure")
	flags.BoolVar(&r.yes, "yes", false, "do not ask")
	flags.BoolVar(&r.wait, "wait", false, "wait until the control planes are restored")
	flags.DurationVar(&r.timeout, "timeout", waitTimeout, "how long to wait for each of them")
	_ = cmd.MarkFlagRequired("seed") // it fails for unknown flags only
	cmd.MarkFlagsOneRequired("to", "abandon")
	cmd.MarkFlagsMutuallyExclusive("to", "abandon")
	cmd.MarkFlagsMutuallyExclusive("wait", "abandon")
	for _, name := range []string{"seed", "to"} {
		_ = cmd.RegisterFlagCompletionFunc(name, c.completion(seedNames))
	}
	return cmd
}

func (c *cli) recoverShoots(ctx context.Context, r recovery) error {
	if r.abandon && len(r.shoots) == 0 {
		return errors.New("--abandon needs the shoots, each with --shoot=NAMESPACE/NAME")
	}
	g, _, err := c.connect()
	if err != nil {
		return err
	}
	reported, err := c.checkSeeds(ctx, g, r)
	if err != nil {
		return err
	}
	found, err := c.recoverables(ctx, g, r)
	if err != nil {
		return err
	}
	bastions, err := lostBastions(ctx, g, r)
	if err != nil || len(found)+len(bastions) == 0 {
		return err
	}
	if err := c.confirmRecovery(ctx, r, len(found)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tSHOOT\tSTATE SAVED\tRESULT")
	failed := 0
	var done []recoverable
	for _, s := range found {
		result, err := c.handOver(ctx, g, s, r)
		if err != nil {
			failed++
			result = line(err.Error())
		} else {
			done = append(done, s)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.shoot.Namespace, s.shoot.Name, savedAgo(s.state, c.Clock.Now()), result)
	}
	if len(found) > 0 {
		if err := table.Flush(); err != nil {
			return err
		}
	}
	releaseErr := c.releaseBastions(ctx, g, bastions, done)
	switch {
	case r.abandon:
		for _, s := range done {
			fmt.Fprintln(c.Out, leftOf(s))
		}
	case r.wait:
		failed += c.awaitRestored(ctx, g, done, r, reported)
	}
	if failed > 0 {
		return errors.Join(releaseErr, fmt.Errorf("%d of %d shoots are not recovered; repeat the command when the reasons are removed", failed, len(found)))
	}
	return releaseErr
}

// confirmRecovery asks whether to go on, unless that is confirmed already.
func (c *cli) confirmRecovery(ctx context.Context, r recovery, shoots int) error {
	if r.yes {
		return nil
	}
	if !c.Interactive {
		return fmt.Errorf("cannot ask for confirmation without a terminal to recover %d shoots of seed %q; add --yes", shoots, r.lost)
	}
	what := fmt.Sprintf("%d shoots of seed %s are restored on seed %s, without what was written after the last backups", shoots, r.lost, r.to)
	if r.abandon {
		what = fmt.Sprintf("The deletion of %d shoots of seed %s ends, and nothing is deleted in their infrastructure", shoots, r.lost)
	}
	if err := c.confirm(ctx, fmt.Sprintf("%s. Seed %s must never run again. Type its name to continue: ", what, r.lost), r.lost); err != nil {
		return fmt.Errorf("%w; nothing is changed", err)
	}
	return nil
}

// handOver hands a shoot over to the other seed, or abandons it, and returns what it is now.
func (c *cli) handOver(ctx context.Context, g *garden, s recoverable, r recovery) (string, error) {
	if r.abandon {
		return "is abandoned", c.abandonShoot(ctx, g, s, r)
	}
	return "is restored on seed " + r.to, c.recoverShoot(ctx, g, s, r)
}

// awaitRestored waits until shoots are restored, and returns how many are not.
func (c *cli) awaitRestored(ctx context.Context, g *garden, shoots []recoverable, r recovery, reported *metav1.MicroTime) (failed int) {
	for _, s := range shoots {
		p := &place{garden: g, namespace: s.shoot.Namespace, name: s.shoot.Name}
		if err := c.await(ctx, p, goal{"on seed " + r.to, func(shoot *corev1beta1.Shoot) error { return movedTo(shoot, r.to, s.shoot.Generation) }}, r.timeout); err != nil {
			failed++
			fmt.Fprintln(c.ErrOut, err)
			continue
		}
		asOf, err := restoredAsOf(ctx, g, s, reported)
		if err != nil {
			failed++
			fmt.Fprintln(c.ErrOut, err)
			continue
		}
		fmt.Fprintf(c.Out, "shoot %s has its objects %s\n", s.shoot.Name, asOf)
	}
	return failed
}

// restoredAsOf returns how recent the objects of a shoot are: what was written later is lost. Reported is when its former seed has reported last, if that is known.
func restoredAsOf(ctx context.Context, g *garden, s recoverable, reported *metav1.MicroTime) (string, error) {
	if s.entry == nil {
		return "from its creation on: it had none before", nil
	}
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	entry := &corev1beta1.BackupEntry{}
	if err := g.client.Get(ctx, client.ObjectKeyFromObject(s.entry), entry); err != nil {
		return "", fmt.Errorf("read BackupEntry %q: %w", s.entry.Name, err)
	}
	asOf, err := time.Parse(time.RFC3339, entry.Annotations[constants.BackupEntryRestoredAsOf])
	switch {
	case err != nil:
		return "of an unknown time: the EtcdCopyBackupsTask has not said which backup was the latest", nil
	case reported == nil || reported.Time.Before(asOf):
		return "as of " + asOf.Format(time.RFC3339), nil
	}
	return fmt.Sprintf("as of %s, %s before the seed reported last", asOf.Format(time.RFC3339), duration.HumanDuration(reported.Sub(asOf))), nil
}

// checkSeeds checks that one seed is lost, and the other one is ready. It prints and returns when the lost one has reported last, which may be unknown.
func (c *cli) checkSeeds(ctx context.Context, g *garden, r recovery) (*metav1.MicroTime, error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	lost, to, lease := &corev1beta1.Seed{}, &corev1beta1.Seed{}, &coordinationv1.Lease{}
	for name, seed := range map[string]*corev1beta1.Seed{r.lost: lost, r.to: to} {
		if name == "" {
			continue
		}
		if err := g.client.Get(ctx, client.ObjectKey{Name: name}, seed); err != nil {
			return nil, c.explain(err, g, fmt.Sprintf("seed %q", name), c.program()+" get seeds")
		}
	}
	if r.lost == r.to {
		return nil, fmt.Errorf("seed %q cannot restore its own shoots; --seed and --to must differ", r.to)
	}
	if err := g.client.Get(ctx, client.ObjectKey{Namespace: constants.GardenerSeedLeaseNamespace, Name: r.lost}, lease); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Lease of seed %q: %w", r.lost, err)
	}
	renewed := lease.Spec.RenewTime
	if err := isLost(lost, renewed, c.Clock.Now()); err != nil {
		return nil, err
	}
	if renewed != nil {
		fmt.Fprintf(c.ErrOut, "Seed %s has reported last %s ago; backups of etcd are at most as recent.\n", r.lost, duration.HumanDuration(c.Clock.Since(renewed.Time)))
	}
	if r.abandon {
		return renewed, nil
	}
	return renewed, takesShoots(to)
}

// isLost returns why a seed is not lost: its gardenlet reports, or has reported just now, or it is not known whether it has ever reported.
func isLost(seed *corev1beta1.Seed, renewed *metav1.MicroTime, now time.Time) error {
	if renewed != nil && now.Sub(renewed.Time) < silence {
		return fmt.Errorf("seed %q is not lost: its gardenlet has reported less than %s ago; to move its shoots, use migrate, after they are restored there", seed.Name, silence)
	}
	ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	switch {
	case ready == nil && renewed == nil:
		return fmt.Errorf("it is not known whether seed %q is lost: it has neither a Lease in namespace %q nor condition %s, as if its gardenlet had never run", seed.Name,
			constants.GardenerSeedLeaseNamespace, corev1beta1.SeedGardenletReady)
	case ready != nil && ready.Status != corev1beta1.ConditionUnknown:
		return fmt.Errorf("seed %q is not lost: its condition %s is %s, and turns Unknown when its gardenlet does not report", seed.Name, ready.Type, ready.Status)
	}
	return nil
}

// takesShoots returns why a seed cannot restore shoots now. What depends on the shoot is checked by the API server.
func takesShoots(seed *corev1beta1.Seed) error {
	ready := ptr.Deref(kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady), corev1beta1.Condition{})
	switch {
	case ready.Status != corev1beta1.ConditionTrue:
		return fmt.Errorf("condition %s of seed %q is %s, so it cannot restore shoots now", corev1beta1.SeedGardenletReady, seed.Name, cmp.Or(ready.Status, corev1beta1.ConditionUnknown))
	case seed.Spec.Backup == nil:
		return fmt.Errorf("seed %q has no backup configured, which it takes to restore shoots", seed.Name)
	}
	return nil
}

// recoverables returns the shoots of a lost seed that are requested. Those that are restored already are only printed.
func (c *cli) recoverables(ctx context.Context, g *garden, r recovery) ([]recoverable, error) {
	list := &corev1beta1.ShootList{}
	listCtx, cancel := within(ctx, requestTimeout)
	defer cancel()
	if err := g.client.List(listCtx, list, client.MatchingLabels{constants.PrefixSeedName + r.lost: "true"}); err != nil {
		return nil, c.explain(err, g, "shoots of seed "+r.lost, c.program()+" get shoots -A")
	}
	byName := map[string]*corev1beta1.Shoot{}
	for i := range list.Items {
		byName[list.Items[i].Namespace+"/"+list.Items[i].Name] = &list.Items[i]
	}
	names := slices.Compact(slices.Sorted(slices.Values(r.shoots)))
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(byName))
	}
	var found []recoverable
	for _, name := range names {
		shoot := byName[name]
		if shoot == nil {
			if strings.Count(name, "/") != 1 {
				return nil, fmt.Errorf("--shoot must be NAMESPACE/NAME, not %q", name)
			}
			fmt.Fprintf(c.ErrOut, "shoot %s is not on seed %s (any more)\n", name, r.lost)
			continue
		}
		s, err := readRecoverable(ctx, g, shoot)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	if len(found) == 0 {
		fmt.Fprintf(c.ErrOut, "No shoots to recover are on seed %s.\n", r.lost)
	}
	return found, nil
}

// readRecoverable reads what is left of a shoot in the garden. Each shoot has its own time: a seed has hundreds.
func readRecoverable(ctx context.Context, g *garden, shoot *corev1beta1.Shoot) (recoverable, error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	s := recoverable{shoot: shoot, state: &corev1beta1.ShootState{}, entry: &corev1beta1.BackupEntry{}}
	if err := g.client.Get(ctx, client.ObjectKeyFromObject(shoot), s.state); apierrors.IsNotFound(err) {
		s.state = nil
	} else if err != nil {
		return s, fmt.Errorf("read ShootState of shoot %q: %w", client.ObjectKeyFromObject(shoot), err)
	}
	entry := client.ObjectKey{Namespace: shoot.Namespace, Name: backupEntryName(shoot)}
	if err := g.client.Get(ctx, entry, s.entry); apierrors.IsNotFound(err) {
		s.entry = nil
	} else if err != nil {
		return s, fmt.Errorf("read BackupEntry %q: %w", entry, err)
	}
	return s, nil
}

func backupEntryName(shoot *corev1beta1.Shoot) string {
	return shoot.Status.TechnicalID + "--" + string(shoot.Status.UID)
}

// unrecoverable returns why a shoot of a lost seed cannot be restored on another one.
func unrecoverable(s recoverable, lost string) error {
	switch on := ptr.Deref(s.shoot.Status.SeedName, lost); {
	case on != lost: // it was to move to the lost seed; a second control plane would use the same machines
		return fmt.Errorf("its control plane is still on seed %q, which is not lost; move it from there", on)
	case s.shoot.DeletionTimestamp != nil:
		return errors.New("it is being deleted; to end that without its seed, use --abandon")
	case s.shoot.Status.TechnicalID == "":
		return nil // nothing was created, and nothing is lost
	case s.state == nil:
		return errors.New("it has no ShootState, so its credentials are lost; to give it up, delete it, then use --abandon")
	case s.entry == nil:
		return errors.New("it has no BackupEntry, so its data are lost")
	}
	// The annotation goes with the last step of a restoration. The bucket of the lost seed may have no backups yet, or only old ones.
	if from := s.entry.Annotations[constants.BackupEntryCopiedFrom]; from != "" && ptr.Deref(s.entry.Spec.SeedName, lost) == lost {
		return fmt.Errorf("its restoration on seed %q had not ended: the latest backups are in bucket %q there, or in bucket %q from where they were copied; see which, and copy "+
			"directory %q to the former, if it is the latter, then remove annotation %q of BackupEntry %q and repeat", lost, s.entry.Spec.BucketName, from, s.entry.Name,
			constants.BackupEntryCopiedFrom, s.entry.Name)
	}
	return nil
}

// savedAgo returns how old the ShootState of a shoot is.
func savedAgo(state *corev1beta1.ShootState, now time.Time) string {
	if state == nil {
		return "never"
	}
	at, err := time.Parse(time.RFC3339Nano, state.Annotations[constants.GardenerTimestamp])
	if err != nil {
		return "unknown"
	}
	return duration.HumanDuration(now.Sub(at)) + " ago"
}

// recoverShoot does in the garden what the gardenlet of the former seed does last when a shoot moves: the other one then restores the shoot as always. The seed of
// the shoot in its status is changed last, so that all is repeated after an interruption.
func (c *cli) recoverShoot(ctx context.Context, g *garden, s recoverable, r recovery) error {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	if err := unrecoverable(s, r.lost); err != nil {
		return err
	}
	if ptr.Deref(s.shoot.Spec.SeedName, "") != r.to {
		if kube.Unrestored(s.shoot.Status.LastOperation) {
			// An operator has seen to its backups. Until its restoration is over, it cannot be bound to another seed. A migration that goes on can.
			before := s.shoot.DeepCopy()
			s.shoot.Status.LastOperation = c.released(r)
			s.shoot.Status.LastOperation.State, s.shoot.Status.LastOperation.Progress = corev1beta1.LastOperationStateProcessing, 99
			if err := g.client.Status().Patch(ctx, s.shoot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
				return fmt.Errorf("end its restoration: %w", err)
			}
		}
		s.shoot.Spec.SeedName = &r.to
		if err := g.client.SubResource("binding").Update(ctx, s.shoot); err != nil {
			return fmt.Errorf("bind it to seed %q: %w", r.to, err)
		}
		if err := g.client.Get(ctx, client.ObjectKeyFromObject(s.shoot), s.shoot); err != nil {
			return fmt.Errorf("read Shoot: %w", err)
		}
	}
	if s.shoot.Status.TechnicalID == "" {
		return nil // it is created there
	}
	if err := c.releaseEntry(ctx, g, s.entry, r); err != nil {
		return err
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // gardener-controller-manager changes the Shoot, too, when it is bound
		if err := g.client.Get(ctx, client.ObjectKeyFromObject(s.shoot), s.shoot); err != nil {
			return err
		}
		if err := unrecoverable(s, r.lost); err != nil {
			return err
		}
		before := s.shoot.DeepCopy()
		s.shoot.Status.SeedName, s.shoot.Status.LastErrors, s.shoot.Status.LastOperation = &r.to, nil, c.released(r)
		return g.client.Status().Patch(ctx, s.shoot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("hand it over to seed %q: %w", r.to, err)
	}
	return nil
}

// releaseEntry hands a BackupEntry over to the other seed, which restores it together with the shoot. Its backups are in the bucket of the lost seed.
func (c *cli) releaseEntry(ctx context.Context, g *garden, entry *corev1beta1.BackupEntry, r recovery) error {
	before := entry.DeepCopy()
	entry.Spec.SeedName = &r.to
	metav1.SetMetaDataAnnotation(&entry.ObjectMeta, constants.BackupEntryNoFinalSnapshot, "true")
	delete(entry.Annotations, constants.BackupEntryRestoredAsOf) // of an earlier move
	if err := g.client.Patch(ctx, entry, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch BackupEntry %q: %w", entry.Name, err)
	}
	before = entry.DeepCopy()
	entry.Status.SeedName, entry.Status.LastError, entry.Status.LastOperation = nil, nil, c.released(r)
	if err := g.client.Status().Patch(ctx, entry, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("release BackupEntry %q: %w", entry.Name, err)
	}
	return nil
}

// released is the last operation of what its seed would have released if it was not lost.
func (c *cli) released(r recovery) *corev1beta1.LastOperation {
	return &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.NewTime(c.Clock.Now()),
		Description: fmt.Sprintf("Seed %q is lost, and nothing was released there.", r.lost),
	}
}
