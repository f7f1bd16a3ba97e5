package lifecycle

import (
	stdcmp "cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/state"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/internal/stage/stagetest"
	extensionworker "gardener.cloud/gardener/pkg/extension/worker"
	"gardener.cloud/gardener/pkg/flow"
)

// release composes the flow that releases a control plane, for what is left of that.
func release(r *reconciler, o *observed.State) (*flow.Flow, error) {
	leaves(o)
	namespace, ctx := &corev1.Namespace{}, context.Background()
	err := r.SeedAPI.Get(ctx, client.ObjectKey{Name: o.Namespace}, namespace)
	if o.HasNamespace = err == nil; client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if o.Migration, err = (observer{gardenAPI: r.GardenAPI, seedAPI: r.SeedAPI}).migration(ctx, o, namespace); err != nil {
		return nil, err
	}
	return r.migrationFlow(o)
}

// TestMove moves a control plane from one seed to another: its credentials, machines and the states of extensions are the same there, and nothing is left
// on the former seed.
func TestMove(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds, as the fake of an API server is slow to apply")
	}
	logf.SetLogger(logr.Discard())
	prepared := func(o *observed.State) {
		o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing, LastInitiationTime: new(metav1.Now())},
			ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{Phase: corev1beta1.RotationPreparing, LastInitiationTime: new(metav1.Now())},
			ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationPreparing, LastInitiationTime: new(metav1.Now())},
		}}
	}
	for name, tc := range map[string]struct {
		change func(*observed.State)
		// rotates starts a rotation before the move.
		rotates func(*observed.State)
		// after is after how many tasks the migration is interrupted each time.
		after int
	}{
		"with workers":           {change: workers, after: -1},
		"interrupted":            {change: workers, after: 4},
		"rotation half way":      {change: workers, rotates: prepared, after: -1},
		"without workers":        {change: func(o *observed.State) { o.Shoot.Spec.Provider.Workers, o.Extensions = nil, nil }, after: -1},
		"without workers, again": {change: func(o *observed.State) { o.Shoot.Spec.Provider.Workers, o.Extensions = nil, nil }, after: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, target, o := newLandscape(t), newLandscape(t), complete(tc.change)
			workerless := o.Shoot.Workerless()
			source.run(t, (*reconciler).reconcileFlow, o, -1)
			if tc.rotates != nil {
				tc.rotates(o)
				source.run(t, (*reconciler).reconcileFlow, o, -1)
			}
			if !workerless {
				giveState(t, source, o)
			}
			entry := o.BackupEntry()
			entry.Spec.SeedName = new("there") // so that the final snapshot counts as taken
			if err := source.garden.Create(t.Context(), entry); err != nil {
				t.Fatal(err)
			}
			persisted := source.persisted(t)
			if tc.rotates != nil && len(persisted["ca"]) != 2 {
				t.Fatalf("there are %d CAs during the rotation", len(persisted["ca"]))
			}
			for done := tc.after; done > 0 && done < 40; done += tc.after {
				source.run(t, release, o, done)
			}
			source.run(t, release, o, -1)
			source.empty(t)
			saved := &corev1beta1.ShootState{}
			if err := source.garden.Get(t.Context(), client.ObjectKeyFromObject(o.Shoot), saved); err != nil {
				t.Fatal(err)
			}
			o.Shoot.Status.SeedName, o.Migration = o.Shoot.Spec.SeedName, nil
			o.Restoration, o.HasNamespace = &observed.Restoration{Saved: saved.Spec}, false
			for range 2 { // the second pass changes nothing
				target.run(t, (*reconciler).reconcileFlow, o, -1)
				if diff := cmp.Diff(persisted, target.persisted(t)); diff != "" {
					t.Errorf("credentials (-former +new seed):\n%s", diff)
				}
			}
			if workerless {
				return
			}
			raw, err := state.Machines(&saved.Spec)
			if err != nil || raw == nil {
				t.Fatalf("machines of the ShootState: %v, %v", raw, err)
			}
			if machines, err := extensionworker.DecodeState(raw.Raw); err != nil || providerIDs(machines) != "local:///m1" {
				t.Errorf("machines of the ShootState are %v, %v", machines, err)
			}
			infrastructure, worker := &extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.Worker{}
			key := client.ObjectKey{Namespace: o.Namespace, Name: o.Shoot.Name}
			if err := errors.Join(target.seed.Get(t.Context(), key, infrastructure), target.seed.Get(t.Context(), key, worker)); err != nil {
				t.Fatal(err)
			}
			if state := infrastructure.Status.State; state == nil || string(state.Raw) != `{"vpc":"v1"}` {
				t.Errorf("the state of the Infrastructure is %v", state)
			}
			sandbox := sandboxOf(o)
			if err := target.seed.Get(t.Context(), client.ObjectKeyFromObject(sandbox), sandbox); err != nil {
				t.Fatal(err)
			}
			if state := sandbox.Status.State; state == nil || string(state.Raw) != `{"version":1}` {
				t.Errorf("the state of the ContainerRuntime is %v", state)
			}
			// The extension that is played here has not removed the state, like some of the original.
			if worker.Status.State != nil {
				t.Errorf("the restored Worker still has the state %s", worker.Status.State.Raw)
			}
			referred := &corev1.Secret{}
			if err := target.seed.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "routes"}, referred); err != nil {
				t.Error(err)
			}
		})
	}
}

// providerIDs returns those of machines.
func providerIDs(state *extensionworker.State) string {
	var ids []string
	for _, deployment := range state.MachineDeployments {
		for i := range deployment.Machines {
			ids = append(ids, deployment.Machines[i].Spec.ProviderID)
		}
	}
	return strings.Join(ids, " ")
}

// An Extension that the shoot has no longer is deleted with what it has outside of the seed, and not released: nothing would be left that knows of it.
func TestStaleExtensionsAreDeletedBeforeAMove(t *testing.T) {
	o := complete(workers)
	leaves(o)
	o.StaleExtensions = []extension.Extension{{Type: "removed", Migrate: corev1beta1.BeforeKubeAPIServer}, {Type: "late", Migrate: corev1beta1.AfterKubeAPIServer}}
	s := newLandscape(t).stages(o, kindMigration)
	if diff := cmp.Diff(o.Extensions, s.deletion.Extensions); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(o.StaleExtensions, s.migration.Stale); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	if s := newLandscape(t).stages(o, kindDeletion); len(s.deletion.Extensions) != len(o.Extensions)+2 {
		t.Errorf("a deletion deletes %v", s.deletion.Extensions)
	}
}

// sandboxOf returns the ContainerRuntime of the pool, with its name only.
func sandboxOf(o *observed.State) *extensionsv1alpha1.ContainerRuntime {
	return &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "sandbox-a"}}
}

// giveState gives an Infrastructure a state with an object that it refers to, and a ContainerRuntime another one, and creates a machine.
func giveState(t *testing.T, l *landscape, o *observed.State) {
	t.Helper()
	infrastructure, sandbox := &extensionsv1alpha1.Infrastructure{}, sandboxOf(o)
	if err := errors.Join(
		l.seed.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Shoot.Name}, infrastructure),
		l.seed.Get(t.Context(), client.ObjectKeyFromObject(sandbox), sandbox),
	); err != nil {
		t.Fatal(err)
	}
	sandbox.Status.State = &runtime.RawExtension{Raw: []byte(`{"version":1}`)}
	infrastructure.Status.State = &runtime.RawExtension{Raw: []byte(`{"vpc":"v1"}`)}
	ref := corev1beta1.NamedResourceReference{Name: "routes"}
	ref.ResourceRef.APIVersion, ref.ResourceRef.Kind, ref.ResourceRef.Name = "v1", "Secret", "routes"
	infrastructure.Status.Resources = []corev1beta1.NamedResourceReference{ref}
	meta := func(name, ownerKind, owner string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Finalizers: []string{machinev1alpha1.MCMFinalizerName}}
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: ownerKind, Name: owner}}
		}
		return m
	}
	if err := errors.Join(
		l.seed.Status().Update(t.Context(), infrastructure),
		l.seed.Status().Update(t.Context(), sandbox),
		l.seed.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "routes"}}),
		l.seed.Create(t.Context(), &machinev1alpha1.MachineDeployment{ObjectMeta: meta("d", "", ""), Spec: machinev1alpha1.MachineDeploymentSpec{Replicas: 1}}),
		l.seed.Create(t.Context(), &machinev1alpha1.MachineSet{ObjectMeta: meta("s", "MachineDeployment", "d")}),
		l.seed.Create(t.Context(), &machinev1alpha1.Machine{ObjectMeta: meta("m", "MachineSet", "s"), Spec: machinev1alpha1.MachineSpec{ProviderID: "local:///m1"}}),
	); err != nil {
		t.Fatal(err)
	}
}

// persisted returns the data of all Secrets that move, by the name of the credential.
func (l *landscape) persisted(t *testing.T) map[string][]corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	if err := l.seed.List(t.Context(), list, client.MatchingLabels{"persist": "true"}); err != nil || len(list.Items) == 0 {
		t.Fatal("no Secrets", err)
	}
	all := map[string][]corev1.Secret{}
	for _, s := range list.Items {
		all[s.Labels["name"]] = append(all[s.Labels["name"]], corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: s.Labels}, Data: s.Data, Type: s.Type, Immutable: s.Immutable,
		})
	}
	return all
}

// empty checks that nothing is left which an extension, the machine-controller-manager or etcd-druid would work on.
func (l *landscape) empty(t *testing.T) {
	t.Helper()
	for left := range l.objects(t) {
		kind := strings.Fields(left)[1]
		if strings.HasPrefix(left, "seed ") && (strings.Contains(kind, "extensions.gardener.cloud") || strings.Contains(kind, "machine.sapcloud.io") ||
			strings.Contains(kind, "druid.gardener.cloud") || strings.Contains(kind, "resources.gardener.cloud") || strings.HasPrefix(kind, "Namespace")) {
			t.Errorf("%s is left", left)
		}
	}
}

// A control plane is released only if the other seed is ready, and no Bastion is in its network.
func TestMayMigrate(t *testing.T) {
	ready := func(status corev1beta1.ConditionStatus) []corev1beta1.Condition {
		return []corev1beta1.Condition{{Type: corev1beta1.ShootReadyForMigration, Status: status, Message: "the message"}}
	}
	bastion := func(shoot string, change func(*operationsv1alpha1.Bastion)) *operationsv1alpha1.Bastion {
		b := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "b"}}
		b.Spec.ShootRef.Name = shoot
		if change != nil {
			change(b)
		}
		return b
	}
	deleted := func(finalizers ...string) func(*operationsv1alpha1.Bastion) {
		return func(b *operationsv1alpha1.Bastion) { b.DeletionTimestamp, b.Finalizers = new(metav1.Now()), finalizers }
	}
	inSeed := func(namespace string) client.Object {
		return &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"}}
	}
	keeping := func(apiVersion, kind string) client.Object {
		e := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--crazy-botany", Name: "dns"}}
		e.Status.Resources = []corev1beta1.NamedResourceReference{
			{Name: "kept", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: "kept"}},
		}
		return e
	}
	const refused = "shoot has still Bastions"
	for name, tc := range map[string]struct {
		constraints []corev1beta1.Condition
		bastion     *operationsv1alpha1.Bastion
		inSeed      client.Object
		secret      corev1.SecretType // of "kept", which is missing if this is empty
		want        string
	}{
		"ready":                   {constraints: ready(corev1beta1.ConditionTrue)},
		"not reported":            {want: "constraint ReadyForMigration is not reported yet"},
		"the seed is not ready":   {constraints: ready(corev1beta1.ConditionFalse), want: "constraint ReadyForMigration is False: the message"},
		"it has a Bastion":        {constraints: ready(corev1beta1.ConditionTrue), bastion: bastion("crazy-botany", nil), want: refused},
		"another one has Bastion": {constraints: ready(corev1beta1.ConditionTrue), bastion: bastion("other", nil)},
		"it has a Bastion whose machine is being deleted": {
			constraints: ready(corev1beta1.ConditionTrue), bastion: bastion("crazy-botany", deleted("gardener", "example.com/keep")), want: refused,
		},
		"it has a Bastion that only others keep": {constraints: ready(corev1beta1.ConditionTrue), bastion: bastion("crazy-botany", deleted("example.com/keep"))},
		"it has a machine whose Bastion only others keep": {
			constraints: ready(corev1beta1.ConditionTrue), bastion: bastion("crazy-botany", deleted("example.com/keep")), inSeed: inSeed("shoot--dev--crazy-botany"), want: refused,
		},
		"an extension that keeps a Secret": {constraints: ready(corev1beta1.ConditionTrue), inSeed: keeping("v1", "Secret")},
		"an extension that keeps a Role": {
			constraints: ready(corev1beta1.ConditionTrue), inSeed: keeping("rbac.authorization.k8s.io/v1", "Role"),
			want: `Extension "dns" refers to Role "kept" in status.resources, and only Secrets and ConfigMaps can be restored, other than those of ManagedResources`,
		},
		"an extension that keeps a token of the seed": {
			constraints: ready(corev1beta1.ConditionTrue), inSeed: keeping("v1", "Secret"), secret: corev1.SecretTypeServiceAccountToken,
			want: `Extension "dns" refers to Secret "kept" in status.resources, and tokens of ServiceAccounts cannot be restored: they are for one seed`,
		},
		"another one has a machine": {constraints: ready(corev1beta1.ConditionTrue), inSeed: inSeed("shoot--dev--other")},
	} {
		t.Run(name, func(t *testing.T) {
			f := reconciled()
			f.shoot.Spec.SeedName, f.shoot.Status.Constraints = new("there"), tc.constraints
			f.shoot.Status.TechnicalID = "shoot--dev--crazy-botany"
			f.seed.Name = "here"
			objects, seedObjects := []client.Object{f.shoot, f.seed}, []client.Object{}
			if tc.bastion != nil {
				objects = append(objects, tc.bastion)
			}
			if tc.inSeed != nil {
				seedObjects = append(seedObjects, tc.inSeed)
			}
			if tc.secret != "" {
				seedObjects = append(seedObjects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.shoot.Status.TechnicalID, Name: "kept"}, Type: tc.secret})
			}
			c := garden(t, objects...)
			r := &reconciler{Values: Values{
				SeedName: "here", GardenAPI: c, SeedAPI: fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(seedObjects...).Build(), Gardener: corev1beta1.Gardener{Version: "v1"}, Config: f.config,
				Clock: clocktesting.NewFakePassiveClock(noon),
			}, gardenCache: c}
			got := ""
			if err := r.mayMigrate(t.Context(), f.shoot); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Fatalf("mayMigrate() is %q, want %q", got, tc.want)
			}
			if tc.want == "" {
				return
			}
			r.Config.RetryDuration = &metav1.Duration{Duration: 1 << 40}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f.shoot)}); err == nil {
				t.Error("it is not retried")
			}
			shoot := &corev1beta1.Shoot{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(f.shoot), shoot); err != nil {
				t.Fatal(err)
			}
			if last := shoot.Status.LastOperation; last.Type != corev1beta1.LastOperationTypeMigrate || last.State != corev1beta1.LastOperationStateError ||
				last.Description != tc.want {
				t.Errorf("last operation is %+v", last)
			}
		})
	}
}

// A control plane without an API server waits for nothing that the other seed does not need to take it: it would have no API meanwhile.
func TestReleaseGoesOn(t *testing.T) {
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--crazy-botany", Name: "kube-apiserver"}}
	ending := server.DeepCopy()
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
	const refused = "constraint ReadyForMigration is False: the message"
	for name, tc := range map[string]struct {
		last   corev1beta1.LastOperationType
		reason string
		server *appsv1.Deployment
		want   string
	}{
		"it runs":                              {last: "Migrate", server: server, want: refused},
		"its API server is gone":               {last: "Migrate"},
		"its API server is being deleted":      {last: "Migrate", server: ending},
		"the other seed is being deleted":      {last: "Migrate", reason: "DestinationSeedInDeletion", want: refused},
		"it was created without an API server": {last: "Create", want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := reconciled().shoot
			shoot.Status.TechnicalID, shoot.Status.LastOperation.Type = "shoot--dev--crazy-botany", tc.last
			shoot.Status.Constraints = []corev1beta1.Condition{{
				Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionFalse, Reason: stdcmp.Or(tc.reason, "DestinationSeedUnready"), Message: "the message",
			}}
			seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t))
			if tc.server != nil {
				seed = seed.WithObjects(tc.server)
			}
			r := &reconciler{Values: Values{SeedAPI: seed.Build()}, gardenCache: garden(t, shoot)}
			got := ""
			if err := r.mayMigrate(t.Context(), shoot); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("mayMigrate() is %q, want %q", got, tc.want)
			}
		})
	}
}

// The last write of the migration hands the shoot over.
func TestHandover(t *testing.T) {
	shoot := reconciled().shoot
	shoot.Spec.SeedName = new("there")
	c := garden(t, shoot)
	status := &statusReporter{
		gardenCache: c, clock: clocktesting.NewFakePassiveClock(noon), shoot: shoot, operation: corev1beta1.LastOperationTypeMigrate, generation: shoot.Generation,
	}
	if _, err := status.begun(t.Context(), &observed.State{Namespace: "shoot--dev--crazy-botany", Shoot: shoot}, "here"); err != nil {
		t.Fatal(err)
	}
	if s := status.shoot.Status; *s.SeedName != "here" || s.LastOperation.Description != "Preparation of Shoot cluster for migration initialized." {
		t.Errorf("status is %+v", s)
	}
	if err := status.succeeded(t.Context(), &observed.State{Shoot: shoot}); err != nil {
		t.Fatal(err)
	}
	after := &corev1beta1.Shoot{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), after); err != nil {
		t.Fatal(err)
	}
	if last := after.Status.LastOperation; *after.Status.SeedName != "there" || last.Type != "Migrate" || last.State != "Succeeded" ||
		last.Description != "Shoot cluster has been successfully prepared for migration." {
		t.Errorf("status is %+v with last operation %+v", after.Status, last)
	}
	if responsible(after) != "there" {
		t.Error("the former seed is still responsible")
	}
}

// Without its ShootState, a control plane would be restored with new credentials, which nodes do not trust.
func TestRestorationNeedsShootState(t *testing.T) {
	for name, tc := range map[string]struct{ exists, ok bool }{
		"it comes from another seed":  {},
		"it has never left this seed": {exists: true, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, o := newLandscape(t), complete(workers)
			o.HasNamespace = tc.exists
			if _, err := l.restoration(t.Context(), o); (err == nil) != tc.ok || err != nil && !apierrors.IsNotFound(errors.Unwrap(err)) {
				t.Errorf("restoration() = %v", err)
			}
		})
	}
}

// A control plane is not released if its data would be lost.
func TestMigrationNeedsBackup(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: complete(workers).Namespace, Name: name}
	}
	etcd := &druidv1alpha1.Etcd{ObjectMeta: meta("etcd-main")}
	for name, tc := range map[string]struct {
		entry, there bool
		seed         client.Object
		want         *observed.Migration // nil if it is an error
	}{
		"with a BackupEntry":           {entry: true, seed: etcd, want: &observed.Migration{Alive: true, NeedsSnapshot: true}},
		"the BackupEntry has moved":    {entry: true, there: true, seed: etcd, want: &observed.Migration{Alive: true}},
		"etcd without a BackupEntry":   {seed: etcd},
		"a kube-apiserver without one": {seed: &appsv1.Deployment{ObjectMeta: meta("kube-apiserver")}},
		"there is no etcd":             {want: &observed.Migration{Alive: true}},
	} {
		t.Run(name, func(t *testing.T) {
			l, o := newLandscape(t), complete(workers)
			leaves(o)
			o.HasNamespace = true
			entry := o.BackupEntry()
			if tc.there {
				entry.Spec.SeedName = new("there")
			}
			var err error
			if tc.entry {
				err = l.garden.Create(t.Context(), entry)
			}
			if tc.seed != nil {
				err = errors.Join(err, l.seed.Create(t.Context(), tc.seed.DeepCopyObject().(client.Object))) //nolint:forcetypeassert // a copy has its original's type
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := observer{gardenAPI: l.garden, seedAPI: l.seed}.migration(t.Context(), o, &corev1.Namespace{})
			if tc.want == nil {
				if err == nil || !strings.Contains(err.Error(), entry.Name) {
					t.Fatalf("error is %v", err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("migration() = %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// The resources of nodes are released together: their Worker tells whether that has begun.
func TestNodesReleased(t *testing.T) {
	worker := func(changes ...func(*extensionsv1alpha1.Worker)) *extensionsv1alpha1.Worker {
		w := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--a", Name: "a", Finalizers: []string{"f"}}}
		for _, change := range changes {
			change(w)
		}
		return w
	}
	for name, tc := range map[string]struct {
		existing []client.Object
		want     bool
	}{
		"not yet": {existing: []client.Object{worker()}},
		"the Worker is being deleted": {
			existing: []client.Object{worker(func(w *extensionsv1alpha1.Worker) { w.DeletionTimestamp = new(metav1.Now()) })}, want: true,
		},
		"the Worker is gone": {want: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(tc.existing...).Build()
			if got, err := nodesReleased(t.Context(), seed, worker()); got != tc.want || err != nil {
				t.Errorf("nodesReleased() = %t, %v", got, err)
			}
		})
	}
}
