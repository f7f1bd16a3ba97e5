package gardenctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerinfo"
	"gardener.cloud/gardener/internal/gardenctl"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/wave"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const former, latest = "v1.150.3", "v1.151.0"

// behaviour is what a played gardenlet does with a new version.
type behaviour string

const (
	// works is to report the new version. So does the gardenlet of the managed seed, if there is one.
	works behaviour = ""
	// rollsBack is to go back to the former version.
	rollsBack behaviour = "rolls back"
	// harms is to report the new version, and to have an unhealthy shoot.
	harms behaviour = "harms"
)

// gardenlets plays those of all seeds. They write what real ones do to Gardenlets, Seeds and Shoots.
type gardenlets struct {
	garden client.WithWatch
	// children are the managed seeds of seeds.
	children map[string]string

	mu         sync.Mutex
	behaviours map[string]behaviour
	// done has the generations that gardenlets have worked on: the watch may have an object without the last status.
	done map[string]int64
	// order has the seeds that were asked for a version, and widest is the largest number of them at the same time.
	order  []string
	widest int
}

func (g *gardenlets) set(seed string, does behaviour) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behaviours[seed] = does
}

// asked returns the seeds that were asked since the last call, and how many at most at the same time.
func (g *gardenlets) asked() (order string, widest int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	order, widest = strings.Join(g.order, " "), g.widest
	g.order, g.widest = nil, 0
	return order, widest
}

// run plays until ctx is done.
func (g *gardenlets) run(ctx context.Context, t *testing.T) {
	err := kube.Await(ctx, g.garden, &seedmanagementv1alpha1.GardenletList{}, func(all []*seedmanagementv1alpha1.Gardenlet) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		busy := 0
		for _, object := range all {
			if object.Annotations[wave.Annotation] != "" {
				busy++
			}
		}
		g.widest = max(g.widest, busy)
		for _, object := range all {
			if g.done[object.Name] >= object.Generation {
				continue
			}
			if err := g.upgrade(ctx, object); err != nil && ctx.Err() == nil {
				t.Errorf("gardenlet of seed %s: %v", object.Name, err)
			}
			g.done[object.Name] = object.Generation
		}
		return errors.New("it goes on")
	}, nil, client.InNamespace(constants.GardenNamespace))
	if ctx.Err() == nil {
		t.Error(err)
	}
}

// upgrade does what the gardenlet of a seed does when its Gardenlet has changed.
func (g *gardenlets) upgrade(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) error {
	if object.Generation > 1 {
		g.order = append(g.order, object.Name)
	}
	condition := corev1beta1.Condition{
		Type: seedmanagementv1alpha1.GardenletReconciled, Status: corev1beta1.ConditionTrue, Reason: "Reconciled", Message: "deployed",
		LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
	}
	does := g.behaviours[object.Name]
	if does == rollsBack {
		condition.Status, condition.Reason, condition.Message = corev1beta1.ConditionFalse, "RolledBack", "its pods crashed"
	} else {
		_, version, _ := strings.Cut(*object.Spec.Deployment.Helm.OCIRepository.Ref, ":")
		for _, seed := range []string{object.Name, g.children[object.Name]} {
			if seed == "" {
				continue
			}
			if err := g.report(ctx, seed, version); err != nil {
				return err
			}
		}
	}
	health := "healthy"
	if does == harms {
		health = "unhealthy"
	}
	if err := g.label(ctx, object.Name, health); err != nil {
		return err
	}
	after := object.DeepCopy()
	after.Status = seedmanagementv1alpha1.GardenletStatus{ObservedGeneration: object.Generation, Conditions: []corev1beta1.Condition{condition}}
	return g.garden.Status().Patch(ctx, after, client.MergeFrom(object))
}

// report writes the status of a seed.
func (g *gardenlets) report(ctx context.Context, name, version string) error {
	seed := &corev1beta1.Seed{}
	if err := g.garden.Get(ctx, client.ObjectKey{Name: name}, seed); err != nil {
		return err
	}
	before := seed.DeepCopy()
	seed.Status.Gardener, seed.Status.ObservedGeneration = &corev1beta1.Gardener{ID: "a", Name: "gardenlet", Version: version}, seed.Generation
	if len(seed.Status.Conditions) == 0 {
		seed.Status.Conditions = []corev1beta1.Condition{{
			Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "Ready", Message: "it reports",
			LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		}}
	}
	return g.garden.Status().Patch(ctx, seed, client.MergeFrom(before))
}

// label is what gardener-controller-manager does with the shoot of a seed, which has the name of the seed.
func (g *gardenlets) label(ctx context.Context, seed, health string) error {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: seed}}
	return client.IgnoreNotFound(kube.PatchMetadata(ctx, g.garden, shoot, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataLabel(&o.ObjectMeta, constants.ShootStatus, health)
	}))
}

// onText is a writer that calls a function when a text is written.
type onText struct {
	text string
	call func()
}

func (o onText) Write(p []byte) (int, error) {
	if strings.Contains(string(p), o.text) {
		o.call()
	}
	return len(p), nil
}

// gardenletConfig is the configuration of the gardenlet of a seed.
func gardenletConfig(t *testing.T, seed string) *runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration", "seedConfig": map[string]any{"spec": builder.Seed(seed).Spec},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: raw}
}

// testUpgradeGardenlets upgrades the gardenlets of six seeds and of a managed one.
func testUpgradeGardenlets(t *testing.T, u *user) {
	info, err := gardenerinfo.ConfigMap(gardenerinfo.APIServer{Version: latest})
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{constants.GardenNamespace, constants.GardenerSystemPublicNamespace} {
		if err := u.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	u.create(t, info)
	garden, err := client.NewWithWatch(u.Config, client.Options{Scheme: u.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	g := &gardenlets{garden: garden, children: map[string]string{"u2": "managed"}, behaviours: map[string]behaviour{}, done: map[string]int64{}}
	labelled := func(s *corev1beta1.Seed) { s.Labels = map[string]string{"stage": "live"} }
	for _, name := range []string{"u1", "u2", "u3", "u4", "u5", "u6"} {
		u.create(t, builder.Seed(name, labelled))
		u.create(t, builder.Gardenlet(name, func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Spec.Deployment.Helm.OCIRepository.Ref, g.Spec.Config = new("registry.example/gardenlet:"+former), gardenletConfig(t, name)
		}))
		u.create(t, builder.Shoot(name, builder.On(name), builder.Window, func(s *corev1beta1.Shoot) { s.Labels = map[string]string{constants.ShootStatus: "healthy"} }))
	}
	u.create(t, builder.Seed("managed", labelled))
	u.create(t, &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "managed", Labels: map[string]string{constants.PrefixSeedName + "u2": "true"}},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot:     &seedmanagementv1alpha1.Shoot{Name: "managed"},
			Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: gardenletConfig(t, "managed")},
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	var playing sync.WaitGroup
	playing.Go(func() { g.run(ctx, t) })
	defer playing.Wait()
	defer stop()
	reports := func(version string, seeds ...string) {
		t.Helper()
		for _, name := range seeds {
			env.Await(t, g.garden, env.Named[*corev1beta1.Seed]("", name), func(s *corev1beta1.Seed) error {
				if s.Status.Gardener == nil || s.Status.Gardener.Version != version {
					return fmt.Errorf("it reports %+v", s.Status.Gardener)
				}
				return nil
			})
		}
	}
	reports(former, "u1", "u2", "u3", "u4", "u5", "u6", "managed")
	g.asked()
	command := []string{"upgrade", "gardenlets", "--to=" + latest, "--selector=stage=live", "--canary=u5", "--wave-size=2", "--soak=0", "--timeout=20s"}
	run := func(t *testing.T, wantCode int, wantOrder string, more ...string) (out, errOut string) {
		t.Helper()
		out, errOut, code := u.run(t.Context(), append(command, more...)...)
		order, widest := g.asked()
		if code != wantCode || order != wantOrder || widest > 2 {
			t.Errorf("exit code %d, asked %q, %d at a time; want %d, %q, 2 at a time\n%s%s", code, order, widest, wantCode, wantOrder, out, errOut)
		}
		return out, errOut
	}
	says := func(t *testing.T, text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in:\n%s", want, text)
		}
	}
	step := env.Story(t)

	step("the plan says what is done, and changes nothing")
	out, _ := run(t, 0, "", "--dry-run")
	want := `WAVE   SEED   VERSION    TO         FOLLOWED BY
1      u5     v1.150.3   v1.151.0   -
2      u1     v1.150.3   v1.151.0   -
2      u2     v1.150.3   v1.151.0   managed
3      u3     v1.150.3   v1.151.0   -
3      u4     v1.150.3   v1.151.0   -
4      u6     v1.150.3   v1.151.0   -
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}

	step("without a confirmation, and for a garden that is older, nothing is done")
	_, errOut := run(t, 1, "")
	says(t, errOut, "cannot ask for confirmation without a terminal to upgrade gardenlets; add --yes")
	_, errOut, code := u.run(t.Context(), "upgrade", "gardenlets", "--to=v1.152.0", "--yes")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	says(t, errOut, "error: the garden has version v1.151.0, and gardenlet v1.152.0 must not have a later minor version: upgrade the garden first\n")

	step("if the canary is rolled back, no other seed is changed")
	g.set("u5", rollsBack)
	_, errOut = run(t, 1, "u5", "--yes")
	says(t, errOut, `error: seed "u5": its pods crashed; no further seed was changed; repeat the command`)
	reports(former, "u1", "u2", "u3", "u4", "u5", "u6", "managed")

	step("the same command tries it once more, and continues; while a shoot is unhealthy, it waits; an interruption leaves it as it is")
	g.set("u5", works)
	g.set("u3", harms)
	interrupted, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	options := u.options
	options.Out, options.ErrOut = io.Discard, onText{"0 of 1 shoots are healthy", interrupt}
	if code := gardenctl.Run(interrupted, options, append(command, "--yes")); code != 130 {
		t.Errorf("exit code %d", code)
	}
	if order, widest := g.asked(); order != "u5 u1 u2 u3 u4" || widest > 2 {
		t.Errorf("asked %q, %d at a time", order, widest)
	}
	reports(latest, "u1", "u2", "managed", "u5", "u3", "u4")
	reports(former, "u6")

	step("a second run compares with the time before the first one, and stops")
	out, errOut = run(t, 1, "", "--yes", "--timeout=2s")
	says(t, out, "1 (begun)   u3     v1.151.0   v1.151.0   -\n1 (begun)   u4 ")
	says(t, errOut, `error: waited 2s for seed "u3": 0 of 1 shoots are healthy, and 1 of 1 were before; no further seed was changed`)

	step("it goes on with a seed as it is now if an operator says so")
	out, _ = run(t, 0, "u6", "--yes", "--accept=u3")
	says(t, out, "all selected seeds have gardenlets with version v1.151.0\n")
	reports(latest, "u1", "u2", "u3", "u4", "u5", "u6", "managed")
	env.AwaitList(t, g.garden, func(all []*seedmanagementv1alpha1.Gardenlet) error {
		for _, object := range all {
			if object.Annotations[wave.Annotation] != "" {
				return fmt.Errorf("Gardenlet %s has the annotation", object.Name)
			}
		}
		return nil
	})

	step("once all is done, nothing is done")
	_, errOut = run(t, 0, "", "--yes")
	says(t, errOut, "7 seeds have version v1.151.0 already")

	step("another image vector overwrite is deployed in waves, too; without the flag, it stays")
	g.set("u3", works)
	file := filepath.Join(t.TempDir(), "overwrite.yaml")
	if err := os.WriteFile(file, []byte("images: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, 0, "u5 u1 u2 u3 u4 u6", "--yes", "--image-vector-overwrite="+file)
	env.AwaitList(t, g.garden, func(all []*seedmanagementv1alpha1.Gardenlet) error {
		for _, object := range all {
			if text := object.Spec.Deployment.ImageVectorOverwrite; text == nil || *text != "images: []\n" {
				return fmt.Errorf("Gardenlet %s has another one", object.Name)
			}
		}
		return nil
	})
	_, errOut = run(t, 0, "", "--dry-run", "--to=v1.151.1")
	says(t, errOut, "warning: the Gardenlets of these seeds keep their image vector overwrite, which may have the images of another version: u1, u2, u3, u4, u5, u6; ")

	step("seeds are listed with their versions and shoots")
	if words := strings.Fields(u.must(t, "get", "seed", "u1")); len(words) != 17 || words[11] != "local" || words[13] != latest || words[15] != "1/-" {
		t.Errorf("get seed: %q", words)
	}
	says(t, u.must(t, "get", "seeds", "-o", "wide"), " TAINTS\n")
}
