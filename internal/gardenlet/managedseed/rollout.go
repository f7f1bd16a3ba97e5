package managedseed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// recordName is the name of the Secret in the shoot with the record of the last deployment. It is there, so that it moves with the shoot to another seed.
const recordName = "gardenlet-rollout"

// rollout is a gardenlet that is to be deployed into a shoot.
type rollout struct {
	shootClient client.Client
	object      *seedmanagementv1alpha1.ManagedSeed
	// seed is nil if it is not registered yet.
	seed *corev1beta1.Seed
	// id identifies what is requested.
	id string
	// objects are those of the chart, without the Secret with bootstrap credentials.
	objects []client.Object
	// lease is the name of the Lease of the leader election. Empty without one.
	lease string
	// bootstrapped is when the gardenlet got new bootstrap credentials. Empty if it never did.
	bootstrapped string
}

// identify returns what identifies the objects of a gardenlet, which have no credentials.
func identify(objects []client.Object) (string, error) {
	texts := make([]string, 0, len(objects))
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return "", err
		}
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	data, err := json.Marshal(texts)
	return workload.Checksum(string(data)), err
}

// split returns a Secret among objects, if it is among them, and the others.
func split(objects []client.Object, secret corev1.SecretReference) (of, others []client.Object) {
	for _, object := range objects {
		if object.GetObjectKind().GroupVersionKind().Kind == "Secret" && object.GetNamespace() == secret.Namespace && object.GetName() == secret.Name {
			of = append(of, object)
		} else {
			others = append(others, object)
		}
	}
	return of, others
}

// rollOut applies the objects of a gardenlet, or those before if it does not work.
func (r *reconciler) rollOut(ctx context.Context, want *rollout) (deployed, error) {
	t, err := trial.ReadFrom(ctx, want.shootClient, client.ObjectKey{Namespace: constants.GardenNamespace, Name: recordName})
	if err != nil {
		return deployed{}, err
	}
	observed, err := trial.Observe(ctx, want.shootClient, t)
	if err != nil {
		return deployed{}, err
	}
	t.Confirmed = confirmed(t, observed, want.seed)
	now := r.Clock.Now()
	since := r.checks.Since(client.ObjectKeyFromObject(want.object), now)
	d := deployed{
		ID: want.id, Trial: t, Verdict: applied(trial.Judge(t, observed, now), t).Checked(since, now), Problem: diagnose(observed, want.seed),
		Retry: retries(t, want.object, want.seed, now),
	}
	working := t.State == trial.Succeeded || t.State == "" && observed.Deployment != nil && kube.DeploymentComplete(observed.Deployment) == nil
	return d, r.act(ctx, decide(d), want, &d, working)
}

// applied returns a verdict that fails by the time only if all objects of the gardenlet were applied. Until then, the error of applying them is reported.
func applied(v trial.Verdict, t *trial.Trial) trial.Verdict {
	if v.Late && t.Applied.IsZero() {
		return trial.Verdict{RecheckIn: trial.SteadyTime}
	}
	return v
}

// confirmed returns the pod that reaches the garden, or "", by the Seed, which may be nil. GardenletReady may be of the gardenlet before, or be kept by
// another process that renews the same Lease in the garden. So the pod that leads must have written the status, too: its name with each success of the
// flow of the Seed, and the last operation with each change of its progress or its error.
func confirmed(t *trial.Trial, o trial.Observed, seed *corev1beta1.Seed) string {
	if seed == nil || gardenletReady(seed).Status != corev1beta1.ConditionTrue {
		return ""
	}
	writer := ptr.Deref(seed.Status.Gardener, corev1beta1.Gardener{}).Name
	if t.Lease == "" {
		return writer
	}
	if leader := o.Leader(); leader == writer || writtenSince(seed, o.Lease) {
		return leader
	}
	return ""
}

// writtenSince says whether the last operation of a Seed was written after the leader got its Lease. Both times are by the clock of that.
func writtenSince(seed *corev1beta1.Seed, lease *coordinationv1.Lease) bool {
	last := seed.Status.LastOperation
	return last != nil && lease != nil && lease.Spec.AcquireTime != nil && last.LastUpdateTime.After(lease.Spec.AcquireTime.Time)
}

// act does what was decided, and changes what is known accordingly. Working says that the gardenlet of before is one to roll back to.
func (r *reconciler) act(ctx context.Context, what step, want *rollout, d *deployed, working bool) error {
	log, t := logf.FromContext(ctx), d.Trial
	switch what {
	case begin:
		log.Info("Deploying another gardenlet", "release", want.id)
		if err := r.begin(ctx, want, t, working); err != nil {
			return err
		}
		d.Verdict = trial.Verdict{RecheckIn: trial.SteadyTime}
		if t.State == trial.Trying { // what is known is about the gardenlet before
			d.Problem = nil
		}
	case succeed:
		log.Info("The gardenlet works", "release", want.id)
		t.State, t.Since, t.Reason, t.Previous = trial.Succeeded, metav1.NewTime(r.Clock.Now()), "", nil
		if err := t.Write(ctx, want.shootClient); err != nil {
			return err
		}
	case rollBack:
		if err := r.rollBack(ctx, want, t, d.Verdict.Failed); err != nil {
			return err
		}
		d.Verdict, d.Problem = trial.Verdict{RecheckIn: trial.SteadyTime}, nil
		return nil
	case restore:
		if t.Generation != want.object.Generation { // raised for another operation
			t.Generation = want.object.Generation
			if err := t.Write(ctx, want.shootClient); err != nil {
				return err
			}
		}
		d.Verdict = trial.Verdict{}
		return want.restore(ctx, t)
	case apply:
	}
	if err := kube.Apply(ctx, want.shootClient, release.FieldOwner, want.objects...); err != nil {
		return err
	}
	if t.State == trial.Trying && t.Applied.IsZero() {
		t.Applied = metav1.NewTime(r.Clock.Now())
		return t.Write(ctx, want.shootClient)
	}
	return nil
}

// begin records what there is before a gardenlet is applied. The API server checks all objects first, so that one that it refuses changes nothing. If
// none of them differs, nothing is tried, so that a later change is rolled back to them.
func (r *reconciler) begin(ctx context.Context, want *rollout, t *trial.Trial, working bool) error {
	differs, err := trial.Differ(ctx, want.shootClient, want.shootClient, want.objects)
	if err != nil {
		return err
	}
	current, err := trial.Snapshot(ctx, want.shootClient, want.shootClient.Scheme(), want.objects)
	if err != nil {
		return err
	}
	if err := want.restoreOthers(ctx, t); err != nil {
		return err
	}
	switch {
	case differs == "" && t.State == trial.Trying: // what is tried stays so
		t.ID, t.Generation = want.id, want.object.Generation
		return t.Write(ctx, want.shootClient)
	case differs == "" && t.ID != want.id && (working || t.State == trial.RolledBack): // what works, or was rolled back to
		t.ID, t.Generation, t.State, t.Reason, t.Lease = want.id, want.object.Generation, trial.Succeeded, "", want.lease
		t.Since, t.Previous = metav1.NewTime(r.Clock.Now()), nil
		return t.Write(ctx, want.shootClient)
	case len(t.Previous) > 0: // another one that did not work, or is tried: the one before both counts
		t.Keep(current)
	case working:
		t.Previous = current
	}
	t.ID, t.Generation, t.State, t.Reason, t.Lease = want.id, want.object.Generation, trial.Trying, "", want.lease
	t.Since, t.Applied, t.Confirmed = metav1.NewTime(r.Clock.Now()), metav1.Time{}, ""
	return t.Write(ctx, want.shootClient)
}

// rollBack applies the objects before. It is recorded first, so that a pass that ends half way is continued.
func (r *reconciler) rollBack(ctx context.Context, want *rollout, t *trial.Trial, failed string) error {
	if t.State != trial.RollingBack {
		logf.FromContext(ctx).Info("Rolling the gardenlet back", "release", want.id, "reason", failed)
		t.State, t.Reason, t.Since = trial.RollingBack, failed, metav1.NewTime(r.Clock.Now())
		if err := t.Write(ctx, want.shootClient); err != nil {
			return err
		}
	}
	if err := want.restore(ctx, t); err != nil {
		return fmt.Errorf("roll the gardenlet back, as it does not work (%s): %w", t.Reason, err)
	}
	t.State = trial.RolledBack
	return t.Write(ctx, want.shootClient)
}

// restore applies the objects before. Only those that are objects of the chart: the record could name any.
func (w *rollout) restore(ctx context.Context, t *trial.Trial) error {
	previous, _, err := trial.Of(t.Previous, w.objects, w.shootClient.Scheme())
	if err != nil {
		return err
	}
	if err := markBootstrapped(previous, w.bootstrapped); err != nil {
		return err
	}
	return trial.Restore(ctx, w.shootClient, previous)
}

// optional are the kinds of objects that the chart has with some values only. All of them are in the namespace of the gardenlet.
var optional = []schema.GroupKind{{Kind: "ConfigMap"}, {Kind: "ServiceAccount"}, {Group: "policy", Kind: "PodDisruptionBudget"}}

// restoreOthers applies those objects before that only the gardenlet has that another one replaces: its roll-back would not. Objects of other kinds are in
// every gardenlet, and the record could name any.
func (w *rollout) restoreOthers(ctx context.Context, t *trial.Trial) error {
	_, others, err := trial.Of(t.Previous, w.objects, w.shootClient.Scheme())
	if err != nil {
		return err
	}
	return trial.Restore(ctx, w.shootClient, slices.DeleteFunc(others, func(p trial.Previous) bool {
		return p.Object.GetNamespace() != constants.GardenNamespace || !slices.Contains(optional, p.Object.GroupVersionKind().GroupKind())
	}))
}

// markBootstrapped annotates the pods of a gardenlet with when it got new bootstrap credentials, if it did: pods of before start again for them, too.
func markBootstrapped(previous []trial.Previous, at string) error {
	for _, p := range previous {
		if at == "" || p.Missing || p.Object.GetKind() != "Deployment" || p.Object.GetName() != gardenlet.Name {
			continue
		}
		if err := unstructured.SetNestedField(p.Object.Object, at, "spec", "template", "metadata", "annotations", annotationBootstrapped); err != nil {
			return fmt.Errorf("annotate the pods of Deployment %q: %w", gardenlet.Name, err)
		}
	}
	return nil
}
