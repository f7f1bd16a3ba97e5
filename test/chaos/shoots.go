package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape"
)

// chaosPrefix is the prefix of the names of the users' shoots.
const chaosPrefix = "chaos"

// settle is how long a shoot may take to match its spec when nothing is killed any more.
const settle = 10 * time.Minute

// everything that may be killed, in the garden, its runtime cluster and the shoots.
const everything = "kube-apiserver,etcd,etcd-backup-restore,kube-controller-manager,kube-scheduler,gardener-apiserver,gardener-controller-manager," +
	"gardener-scheduler,gardener-admission-controller,gardenlet,gardener-resource-manager,etcd-druid,provider-local,machine-controller-manager," +
	"machine-controller-manager-provider-local,vpn-seed-server,vpn-shoot,gardener-node-agent,haproxy,containerd,kubelet"

type users struct {
	clients

	l        *landscape.Landscape
	before   *surroundings
	manifest string
	random   *rand.Rand
	mutex    sync.Mutex // of the random numbers

	creations, changes, deletions int
}

// disturbance is a landscape whose users create, change and delete shoots while processes are killed.
type disturbance struct {
	landscape, manifest, programs *string
	users                         *int
	seed                          *uint64
	longest                       *time.Duration
}

func disturbanceFlags(flags *flag.FlagSet) *disturbance {
	return &disturbance{
		landscape: flags.String("landscape", "local", "name of the landscape"),
		users:     flags.Int("users", 3, "how many shoots there are at the same time"),
		manifest:  flags.String("f", "example/shoot-workerless.yaml", "the shoot to create, with other names"),
		programs:  flags.String("programs", everything, "what is killed; empty for nothing"),
		seed:      flags.Uint64("seed", 0, "of the random numbers, to repeat a run"),
		longest:   flags.Duration("longest", 10*time.Second, "the longest time between two kills"),
	}
}

// runShoots lets some users create, change and delete shoots while everything is killed, and checks what is left in the end.
func runShoots(ctx context.Context, flags *flag.FlagSet, args []string) error {
	d := disturbanceFlags(flags)
	duration := flags.Duration("duration", 20*time.Minute, "how long processes are killed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return d.run(ctx, lasting(*duration))
}

// lasting returns a function that only takes its time.
func lasting(duration time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-time.After(duration):
		}
		return nil
	}
}

// run disturbs the landscape until meanwhile returns, and checks that everything matches its spec then.
func (d *disturbance) run(ctx context.Context, meanwhile func(context.Context) error) error {
	l, c, err := open(*d.landscape)
	if err != nil {
		return err
	}
	before, err := observe(ctx, l, c.garden, chaosPrefix)
	if err != nil {
		return err
	}
	random := newRandom(*d.seed)
	u := &users{l: l, clients: c, before: before, manifest: *d.manifest, random: random}
	//nolint:gosec // as above
	k := d.killer(rand.New(random))
	other, err := newIntruder(l, c.garden)
	if err != nil {
		return err
	}
	using, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { k.run(using) })
	running.Go(func() { other.run(using) })
	last := make([]*corev1beta1.Shoot, *d.users)
	for i := range last {
		running.Go(func() { last[i] = u.use(using, fmt.Sprintf("%s%d", chaosPrefix, i)) })
	}
	failure := meanwhile(using)
	stop()
	running.Wait()
	if ctx.Err() != nil {
		return u.clean(ctx)
	}
	fmt.Fprintln(os.Stderr, "Nothing is killed any more; waiting until everything matches its spec")
	printKills(k.kills)
	fmt.Printf("%-32s %d\n%-32s %d\n%-32s %d\n", "shoots created", u.creations, "shoots changed", u.changes, "shoots deleted", u.deletions)
	err = errors.Join(failure, other.report(), u.settle(ctx, last))
	if ctx.Err() != nil {
		return u.clean(ctx)
	}
	return err
}

// killer returns one that has not begun.
func (d *disturbance) killer(random *rand.Rand) *killer {
	programs := strings.FieldsFunc(*d.programs, func(r rune) bool { return r == ',' })
	return &killer{landscape: *d.landscape, programs: programs, random: random, shortest: time.Second, longest: *d.longest}
}

// clean deletes the shoots of an interrupted run: the next one does not start while they exist.
func (u *users) clean(ctx context.Context) error {
	fmt.Fprintln(os.Stderr, "Interrupted; deleting the shoots. Interrupt once more to keep them")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settle)
	defer cancel()
	var left []*corev1beta1.Shoot
	failures := []error{errors.New("interrupted"), u.persist(ctx, func() (err error) { // the API server may have been killed a moment ago
		left, err = u.left(ctx)
		return err
	})}
	for _, shoot := range left {
		failures = append(failures, u.persist(ctx, func() error { return kube.DeleteShoot(ctx, u.garden, client.ObjectKeyFromObject(shoot)) }))
	}
	for _, shoot := range left {
		failures = append(failures, u.await(ctx, shoot, kube.ShootGone))
	}
	return errors.Join(failures...)
}

// left are the users' shoots.
func (u *users) left(ctx context.Context) ([]*corev1beta1.Shoot, error) {
	all := &corev1beta1.ShootList{}
	if err := u.garden.List(ctx, all); err != nil {
		return nil, err
	}
	var left []*corev1beta1.Shoot
	for i := range all.Items {
		if shoot := &all.Items[i]; strings.HasPrefix(shoot.Name, chaosPrefix) {
			left = append(left, shoot)
		}
	}
	return left, nil
}

// use creates, changes and deletes one shoot after another until the context ends. It returns the last one, if it was not deleted.
func (u *users) use(ctx context.Context, name string) *corev1beta1.Shoot {
	for ctx.Err() == nil {
		shoot, err := shootFrom(u.manifest, name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			return nil
		}
		if err := u.persist(ctx, func() error { return client.IgnoreAlreadyExists(u.garden.Create(ctx, shoot)) }); err != nil {
			return shoot
		}
		u.count(&u.creations)
		u.wait(ctx)
		for range u.upTo(3) {
			if err := u.persist(ctx, func() error { return u.change(ctx, shoot) }); err != nil {
				return shoot
			}
			u.count(&u.changes)
			u.wait(ctx)
		}
		if ctx.Err() != nil {
			return shoot
		}
		if err := u.persist(ctx, func() error { return kube.DeleteShoot(ctx, u.garden, client.ObjectKeyFromObject(shoot)) }); err != nil {
			return shoot
		}
		u.count(&u.deletions)
		if u.await(ctx, shoot, kube.ShootGone) != nil {
			return nil // its deletion ends when nothing is killed any more
		}
	}
	return nil
}

// shootFrom reads a Shoot from a file, and gives it a name.
func shootFrom(manifest, name string) (*corev1beta1.Shoot, error) {
	data, err := os.ReadFile(manifest)
	if err != nil {
		return nil, err
	}
	shoot := &corev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(data, shoot); err != nil {
		return nil, fmt.Errorf("read %s: %w", manifest, err)
	}
	shoot.Name = name
	return shoot, nil
}

// change changes a setting of kube-apiserver, and the number of nodes if there are any.
func (u *users) change(ctx context.Context, shoot *corev1beta1.Shoot) error {
	inflight, nodes := int32(100+u.upTo(300)), int32(u.upTo(mostNodes)) //nolint:gosec // small
	return changeShoot(ctx, u.garden, client.ObjectKeyFromObject(shoot), func(spec *corev1beta1.ShootSpec) { alter(spec, inflight, nodes) })
}

// changeShoot changes the spec of a Shoot, again after a conflict.
func changeShoot(ctx context.Context, garden client.Client, key client.ObjectKey, change func(*corev1beta1.ShootSpec)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		shoot := &corev1beta1.Shoot{}
		if err := garden.Get(ctx, key, shoot); err != nil {
			return err
		}
		change(&shoot.Spec)
		return garden.Update(ctx, shoot)
	})
}

// persist retries until it works: the garden's API server is killed, too.
func (u *users) persist(ctx context.Context, do func() error) error {
	const pause = 500 * time.Millisecond
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// wait waits for a random time, up to that of a creation.
func (u *users) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(u.upTo(40)) * time.Second):
	}
}

func (u *users) upTo(n int) int {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.random.IntN(n) + 1
}

func (u *users) count(counter *int) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	*counter++
}

// settle waits until the remaining shoots are healthy, deletes them, and checks for leftovers.
func (u *users) settle(ctx context.Context, last []*corev1beta1.Shoot) error {
	last = slices.DeleteFunc(last, func(s *corev1beta1.Shoot) bool { return s == nil })
	var stuck []error
	for _, shoot := range last {
		err := u.await(ctx, shoot, healthyOrGone)
		if err == nil {
			err = u.matchesSpec(ctx, shoot)
		}
		stuck = append(stuck, err)
	}
	for _, shoot := range last {
		stuck = append(stuck, kube.DeleteShoot(ctx, u.garden, client.ObjectKeyFromObject(shoot)))
	}
	left, err := u.left(ctx)
	if err != nil {
		return err
	}
	for _, shoot := range left {
		stuck = append(stuck, u.await(ctx, shoot, kube.ShootGone))
	}
	stuck = slices.DeleteFunc(stuck, func(err error) bool { return err == nil })
	leaks := u.before.leaks(ctx)
	fmt.Printf("%-32s %d\n%-32s %t\n", "stuck", len(stuck), "something is left over", leaks != nil)
	return errors.Join(append(stuck, leaks)...)
}

func (u *users) await(ctx context.Context, shoot *corev1beta1.Shoot, check func(*corev1beta1.Shoot) error) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	key := client.ObjectKeyFromObject(shoot)
	if err := kube.AwaitShoot(ctx, u.garden, key, check, nil); err != nil {
		return fmt.Errorf("shoot %q: %w", key, err)
	}
	return nil
}

// healthyOrGone is for a shoot whose deletion may have been requested.
func healthyOrGone(shoot *corev1beta1.Shoot) error {
	if shoot == nil || shoot.DeletionTimestamp != nil {
		return nil
	}
	return kube.ShootHealthy(shoot)
}
