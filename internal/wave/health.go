package wave

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// Annotation is on the object of a gardenlet from the beginning of its upgrade until its wave has passed. It says how its seeds were before, so that a
// second run compares with that, too.
const Annotation = "gardenctl.gardener.cloud/upgrade"

// unhealthyShoot are the values of the label of shoots that are not healthy, which gardener-controller-manager sets. One that is progressing is not worse: on a busy seed,
// there always is one.
var unhealthyShoot = []string{"unhealthy", "unknown"}

// gated are the conditions of Seeds that an upgrade must not break.
var gated = []corev1beta1.ConditionType{
	corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedExtensionsReady, corev1beta1.SeedBackupBucketsReady,
}

// mark is the value of the annotation.
type mark struct {
	// Version is that of the target.
	Version string `json:"version"`
	// Seeds are those that depend on the gardenlet, as they were before.
	Seeds map[string]health `json:"seeds"`
}

// health is how a seed was before an upgrade.
type health struct {
	// At is when it was so.
	At metav1.Time `json:"at"`
	// Conditions are those that were True.
	Conditions []corev1beta1.ConditionType `json:"conditions,omitempty"`
	// Shoots is the number of its shoots, and Healthy that of those that are healthy, or progressing.
	Shoots  int `json:"shoots"`
	Healthy int `json:"healthy"`
}

// marked returns the mark of an object. It is empty without one, or if it cannot be read.
func marked(object client.Object) mark {
	m := mark{}
	if err := json.Unmarshal([]byte(object.GetAnnotations()[Annotation]), &m); err != nil {
		return mark{}
	}
	return m
}

func equal(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }

// healthOf returns how a seed is now.
func healthOf(seed *corev1beta1.Seed, shoots []*metav1.PartialObjectMetadata, now time.Time) health {
	now = now.Truncate(time.Second) // as it is stored
	h := health{At: metav1.NewTime(now)}
	if seed == nil {
		return h
	}
	for _, condition := range seed.Status.Conditions {
		if slices.Contains(gated, condition.Type) && condition.Status == corev1beta1.ConditionTrue {
			h.Conditions = append(h.Conditions, condition.Type)
		}
	}
	slices.Sort(h.Conditions)
	h.Shoots, h.Healthy = count(shoots, now)
	return h
}

// count returns the number of shoots, and that of the healthy or progressing ones. Those that were created later, or are deleted, are not counted.
func count(shoots []*metav1.PartialObjectMetadata, until time.Time) (all, healthy int) {
	for _, shoot := range shoots {
		if shoot.DeletionTimestamp != nil || shoot.CreationTimestamp.After(until) {
			continue
		}
		all++
		if !slices.Contains(unhealthyShoot, shoot.Labels[constants.ShootStatus]) {
			healthy++
		}
	}
	return all, healthy
}

// broken is an error that no waiting repairs.
type broken struct{ error }

// Unwrap returns what is broken.
func (b *broken) Unwrap() error { return b.error }

// missing returns what a gardenlet and its seeds lack, or nil if the wave may go on. The generation is that of its object with the new version. So many percent of
// the shoots of each seed may have become unhealthy.
func (v *view) missing(g Gardenlet, target Target, generation int64, tolerated int) error {
	object := v.object(g.Seed)
	if object == nil || v.seeds[g.Seed] == nil {
		return nil // it was deleted, and nothing of it can break any more
	}
	if object.GetGeneration() < generation {
		return errors.New("the change is on its way")
	}
	if changed, err := target.apply(object); err != nil || changed != nil {
		return &broken{fmt.Errorf("its %s does not request the version any more, because another tool has changed it: set the version there, too", kindOf(object))}
	}
	if err := deployed(object); err != nil {
		return err
	}
	before := marked(object).Seeds
	for _, name := range g.seeds() {
		seed, was := v.seeds[name], before[name]
		if seed == nil || name != g.Seed && !slices.Contains(was.Conditions, corev1beta1.SeedGardenletReady) {
			continue // its gardenlet did not run before either
		}
		if !slices.Contains(g.affected, name) && !target.reported(version(seed)) {
			return about(g, name, v.behind(name))
		}
		if err := worse(seed, v.shoots[name], was, tolerated); err != nil {
			return about(g, name, err)
		}
	}
	return nil
}

// about says which seed an error is about, if that is not the one of the gardenlet.
func about(g Gardenlet, seed string, err error) error {
	if seed == g.Seed {
		return err
	}
	return fmt.Errorf("managed seed %q: %w", seed, err)
}

func kindOf(object client.Object) string {
	if _, ok := object.(*seedmanagementv1alpha1.ManagedSeed); ok {
		return "ManagedSeed"
	}
	return "Gardenlet"
}

// deployed returns why the gardenlet of an object is not deployed.
func deployed(object client.Object) error {
	switch o := object.(type) {
	case *seedmanagementv1alpha1.Gardenlet:
		condition := ptr.Deref(kube.Condition(o.Status.Conditions, seedmanagementv1alpha1.GardenletReconciled), corev1beta1.Condition{})
		switch {
		case o.Status.ObservedGeneration < o.Generation || condition.Status == "":
			return errors.New("its gardenlet has not observed the change yet")
		case condition.Reason == seedmanagementv1alpha1.GardenletReasonRolledBack || condition.Reason == seedmanagementv1alpha1.GardenletReasonNotApproved:
			return &broken{errors.New(condition.Message)}
		case condition.Status != corev1beta1.ConditionTrue:
			return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		}
	case *seedmanagementv1alpha1.ManagedSeed:
		condition := ptr.Deref(kube.Condition(o.Status.Conditions, seedmanagementv1alpha1.ManagedSeedSeedRegistered), corev1beta1.Condition{})
		switch {
		case condition.Status != corev1beta1.ConditionTrue:
			return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		case o.Status.ObservedGeneration < o.Generation:
			return errors.New("the gardenlet that deploys it has not observed the change yet")
		}
		if healthy := kube.Condition(o.Status.Conditions, seedmanagementv1alpha1.ManagedSeedGardenletHealthy); healthy != nil &&
			healthy.Reason == seedmanagementv1alpha1.GardenletReasonRolledBack {
			return &broken{errors.New(healthy.Message)}
		}
	}
	return nil
}

// behind says that the gardenlet of a seed reports another version, and why, as far as its ManagedSeed says so.
func (v *view) behind(name string) error {
	err := fmt.Errorf("its gardenlet reports version %s", version(v.seeds[name]))
	if managed := v.managedSeeds[name]; managed != nil && v.gardenlets[name] == nil {
		for _, condition := range managed.Status.Conditions {
			if condition.Status == corev1beta1.ConditionFalse {
				return fmt.Errorf("%w: %s", err, condition.Message)
			}
		}
	}
	return err
}

// worse returns in what a seed is worse than it was. So many percent of its shoots may have become unhealthy.
func worse(seed *corev1beta1.Seed, shoots []*metav1.PartialObjectMetadata, was health, tolerated int) error {
	if seed.Status.ObservedGeneration < seed.Generation {
		return errors.New("the Seed has changed and is not reconciled yet")
	}
	for _, conditionType := range gated {
		if !slices.Contains(was.Conditions, conditionType) {
			continue
		}
		condition := ptr.Deref(kube.Condition(seed.Status.Conditions, conditionType), corev1beta1.Condition{Status: corev1beta1.ConditionUnknown})
		if condition.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("condition %s is %s: %s", conditionType, condition.Status, condition.Message)
		}
	}
	// Not the share of healthy ones: it also falls when a healthy one is deleted, or moves away.
	if all, healthy := count(shoots, was.At.Time); all-healthy > was.Shoots-was.Healthy+was.Shoots*tolerated/100 {
		return fmt.Errorf("%d of %d shoots are healthy, and %d of %d were before", healthy, all, was.Healthy, was.Shoots)
	}
	return nil
}
