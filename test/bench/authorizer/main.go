// Command authorizer measures how fast the authorizer of seeds decides in a garden of a given size, and how much memory its graph takes.
// The objects are real ones, in the mix of a large landscape; clients ask while Shoots change. It also measures whole requests as a
// kube-apiserver makes them: SubjectAccessReviews over TLS, on this machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	kauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/authorizer"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// idle is a seed without shoots.
const idle = "idle"

// size is that of a garden.
type size struct{ seeds, shoots, projects int }

func main() {
	s := size{}
	flag.IntVar(&s.seeds, "seeds", 1000, "number of seeds; four of five are managed")
	flag.IntVar(&s.shoots, "shoots", 50000, "number of shoots, in a project for every 25")
	requests := flag.Int("requests", 1000000, "number of requests to decide")
	reviews := flag.Int("reviews", 50000, "number of requests through the webhook")
	flag.Parse()
	s.projects = max(1, s.shoots/25)
	if err := run(s, *requests, *reviews); err != nil {
		log.Fatal(err)
	}
}

func run(s size, requests, reviews int) error {
	before := heap()
	start := time.Now()
	g := graph.New(clock.RealClock{})
	for object := range s.objects {
		g.Set(graph.Of(object))
	}
	built := time.Since(start)
	vertices, edges := g.Size()
	memory := heap() - before

	values := authorizer.Values{Graph: g, Complete: func() bool { return true }}
	seeds := authorizer.NewSeeds(values)
	ctx, cancel := context.WithCancel(context.Background())
	changes := &changes{}
	var writer sync.WaitGroup
	writer.Go(func() { changes.run(ctx, s, g) })
	mixed, allowed, err := decide(ctx, seeds, requests, s.mixed)
	if err != nil {
		cancel()
		return err
	}
	worst, _, err := decide(ctx, seeds, requests/10, s.worst)
	var reviewed []time.Duration
	if err == nil {
		reviewed, err = review(ctx, seeds, reviews, s.mixed)
	}
	cancel()
	writer.Wait()
	if err != nil {
		return err
	}

	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, d []time.Duration) {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t\n", name, quantile(d, 0.5), quantile(d, 0.99), d[len(d)-1])
	}
	fmt.Printf("%d seeds, %d shoots, %d projects: %d vertices, %d edges, %.0f MiB; built in %s\n", s.seeds, s.shoots, s.projects, vertices, edges,
		float64(memory)/(1<<20), built.Round(time.Millisecond))
	fmt.Fprintf(out, "\tp50\tp99\tmax\t\n")
	row(fmt.Sprintf("%d decisions, %d%% allowed", len(mixed), 100*allowed/len(mixed)), mixed)
	row("CloudProfile, Project, shared Secret, of others", worst)
	row(fmt.Sprintf("%d requests through the webhook", len(reviewed)), reviewed)
	if slices.Sort(changes.took); len(changes.took) > 0 {
		row(fmt.Sprintf("%d changes of a Shoot", len(changes.took)), changes.took)
	}
	runtime.KeepAlive(g)
	return out.Flush()
}

// heap returns how many bytes are in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}

func decide(ctx context.Context, a kauthorizer.Authorizer, n int, request func(*rand.Rand) kauthorizer.Attributes) (took []time.Duration, allowed int, err error) {
	took = make([]time.Duration, n)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not for secrets
	for i := range took {
		attributes := request(r)
		start := time.Now()
		decision, _, err := a.Authorize(ctx, attributes)
		took[i] = time.Since(start)
		if err != nil {
			return nil, 0, err
		}
		if decision == kauthorizer.DecisionAllow {
			allowed++
		}
	}
	slices.Sort(took)
	return took, allowed, nil
}

// changes moves Shoots to other seeds and back, 200 times a second.
type changes struct {
	took []time.Duration
}

func (c *changes) run(ctx context.Context, s size, g *graph.Graph) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		shoot := s.shoot(i % s.shoots)
		if i/s.shoots%2 == 0 {
			shoot.Status.SeedName = new(s.seed(i + 7))
		}
		start := time.Now()
		g.Set(graph.Of(shoot))
		c.took = append(c.took, time.Since(start))
	}
}

func (s size) seed(i int) string      { return fmt.Sprintf("seed-%d", i%s.seeds) }
func (s size) namespace(i int) string { return fmt.Sprintf("garden-p%d", i%s.projects) }
func shootName(i int) string          { return fmt.Sprintf("shoot%d", i) }

// objects are those of the garden: Shoots first, as informers have no order.
func (s size) objects(yield func(client.Object) bool) {
	if !yield(&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: idle}}) {
		return
	}
	for i := range s.shoots {
		entry := &corev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(i), Name: "shoot--" + shootName(i), OwnerReferences: []metav1.OwnerReference{{Kind: "Shoot", Name: shootName(i)}}},
			Spec:       corev1beta1.BackupEntrySpec{BucketName: "bucket-" + s.seed(i), SeedName: new(s.seed(i))},
			Status:     corev1beta1.BackupEntryStatus{SeedName: new(s.seed(i))},
		}
		if !yield(s.shoot(i)) || !yield(entry) {
			return
		}
	}
	for i := range s.projects {
		project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}, Spec: corev1beta1.ProjectSpec{Namespace: new(s.namespace(i))}}
		if !yield(project) {
			return
		}
		for j := range 5 {
			binding := &securityv1alpha1.CredentialsBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(i), Name: fmt.Sprintf("b%d", j)},
				// One in five is for a Secret that all projects share.
				CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: s.namespace(i), Name: fmt.Sprintf("s%d", j)},
			}
			if j == 0 {
				binding.CredentialsRef.Namespace = constants.GardenNamespace
			}
			if !yield(binding) {
				return
			}
		}
	}
	for i := range s.seeds {
		if !s.seedObjects(i, yield) {
			return
		}
	}
}

func (s size) seedObjects(i int, yield func(client.Object) bool) bool {
	secret := func(name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: constants.GardenNamespace, Name: name}
	}
	name := s.seed(i)
	objects := []client.Object{
		&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.SeedSpec{
			Backup: &corev1beta1.Backup{CredentialsRef: secret("backup-" + name)},
			DNS:    corev1beta1.SeedDNS{Internal: &corev1beta1.SeedDNSProviderConfig{CredentialsRef: *secret("dns-internal")}},
		}},
		&corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket-" + name}, Spec: corev1beta1.BackupBucketSpec{
			SeedName: &name, CredentialsRef: secret("backup-" + name),
		}},
	}
	if i%5 > 0 {
		objects = append(objects, &seedmanagementv1alpha1.ManagedSeed{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name},
			Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: name}},
		}, &corev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}, Spec: corev1beta1.ShootSpec{SeedName: new(s.seed(i / 5 * 5))},
		})
	}
	for j := range 20 {
		objects = append(objects, &corev1beta1.ControllerInstallation{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, j)},
			Spec: corev1beta1.ControllerInstallationSpec{
				RegistrationRef: corev1.ObjectReference{Name: fmt.Sprintf("r%d", j)}, DeploymentRef: &corev1.ObjectReference{Name: fmt.Sprintf("d%d", j)},
				SeedRef: &corev1.ObjectReference{Name: name},
			},
		})
	}
	for _, object := range objects {
		if !yield(object) {
			return false
		}
	}
	return true
}

func (s size) shoot(i int) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(i), Name: shootName(i), UID: types.UID(fmt.Sprint(i))},
		Spec: corev1beta1.ShootSpec{
			SeedName: new(s.seed(i)), CredentialsBindingName: new(fmt.Sprintf("b%d", i%5)),
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: fmt.Sprintf("c%d", i%3)},
			Kubernetes: corev1beta1.Kubernetes{KubeAPIServer: &corev1beta1.KubeAPIServerConfig{AuditConfig: &corev1beta1.AuditConfig{
				AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}},
			}}},
			Resources: []corev1beta1.NamedResourceReference{resource("Secret", "extra"), resource("ConfigMap", "more")},
		},
		Status: corev1beta1.ShootStatus{SeedName: new(s.seed(i))},
	}
}

func resource(kind, name string) corev1beta1.NamedResourceReference {
	r := corev1beta1.NamedResourceReference{Name: name}
	r.ResourceRef.APIVersion, r.ResourceRef.Kind, r.ResourceRef.Name = "v1", kind, name
	return r
}

// mixed returns a request as gardenlets make them; one in ten is for an object of another seed.
func (s size) mixed(r *rand.Rand) kauthorizer.Attributes {
	i := r.IntN(s.shoots)
	seed := s.seed(i)
	if r.IntN(10) == 0 {
		seed = s.seed(i + 1)
	}
	switch n := r.IntN(100); {
	case n < 40:
		return s.request(seed, "patch", "core.gardener.cloud", "shoots", "status", s.namespace(i), shootName(i))
	case n < 60:
		return s.request(seed, "update", "coordination.k8s.io", "leases", "", constants.GardenerSeedLeaseNamespace, seed)
	case n < 70:
		return s.request(seed, "get", "", "secrets", "", s.namespace(i), fmt.Sprintf("s%d", i%5))
	case n < 80:
		return s.request(seed, "patch", "", "secrets", "", s.namespace(i), shootName(i)+".monitoring")
	case n < 85:
		return s.request(seed, "patch", "core.gardener.cloud", "backupentries", "status", s.namespace(i), "shoot--"+shootName(i))
	case n < 90:
		return s.request(seed, "get", "core.gardener.cloud", "projects", "", "", fmt.Sprintf("p%d", i%s.projects))
	case n < 95:
		return s.request(seed, "create", "", "events", "", s.namespace(i), "")
	default:
		return s.request(seed, "patch", "core.gardener.cloud", "controllerinstallations", "status", "", fmt.Sprintf("%s-%d", seed, r.IntN(20)))
	}
}

// worst returns a request for an object that many Shoots use, none of them on the seed of the client.
func (s size) worst(r *rand.Rand) kauthorizer.Attributes {
	seed := s.seed(r.IntN(s.seeds))
	switch r.IntN(3) {
	case 0:
		return s.request(idle, "get", "core.gardener.cloud", "cloudprofiles", "", "", fmt.Sprintf("c%d", r.IntN(3)))
	case 1:
		return s.request(seed, "get", "core.gardener.cloud", "projects", "", "", fmt.Sprintf("p%d", r.IntN(s.projects)))
	default:
		return s.request(idle, "get", "", "secrets", "", constants.GardenNamespace, "s0")
	}
}

func (s size) request(seed, verb, group, resource, subresource, namespace, name string) kauthorizer.Attributes {
	return kauthorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: constants.SeedUserNamePrefix + seed, Groups: []string{constants.SeedsGroup}},
		Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource, Namespace: namespace, Name: name, ResourceRequest: true,
	}
}
