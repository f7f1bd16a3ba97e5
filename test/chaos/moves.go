package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// Kinds of shoots that move.
const (
	withoutNodes, withNodes, hibernated, rotating = "workerless", "nodes", "hibernated", "rotating"
	// moveLimit is the end of a move while processes are killed.
	moveLimit = 20 * time.Minute
)

// moves are shoots whose control planes move between two seeds.
type moves struct {
	*users

	seeds []string
	// nodes is the manifest of shoots with nodes.
	nodes string

	results sync.Mutex // of the fields below
	begun   int
	done    []move
}

// move is the result of a move.
type move struct {
	kind, to         string
	duration, outage time.Duration
}

// runMoves moves control planes from one seed to the other and back while everything is killed, and checks what is left in the end.
func runMoves(ctx context.Context, flags *flag.FlagSet, args []string) error {
	d := disturbanceFlags(flags)
	count := flags.Int("moves", 50, "how many times a control plane moves, all shoots together")
	kinds := flags.String("kinds", strings.Join([]string{withoutNodes, withNodes, hibernated, rotating}, ","), "the shoots: a kind may be there several times")
	seeds := flags.String("seeds", "local,local-2", "the two seeds")
	nodes := flags.String("nodes", "example/shoot.yaml", "the shoot with nodes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, c, err := open(*d.landscape)
	if err != nil {
		return err
	}
	m := &moves{seeds: strings.Split(*seeds, ","), nodes: *nodes}
	if len(m.seeds) != 2 {
		return errors.New("-seeds: name two, with a comma")
	}
	before, err := observe(ctx, l, c.garden, chaosPrefix, m.seeds[1])
	if err != nil {
		return err
	}
	random := newRandom(*d.seed)
	m.users = &users{l: l, clients: c, before: before, manifest: *d.manifest, random: random}
	//nolint:gosec // no need for secrecy
	k := d.killer(rand.New(random))
	return m.run(ctx, k, strings.Split(*kinds, ","), *count)
}

// run moves shoots of some kinds at the same time, until there were so many moves.
func (m *moves) run(ctx context.Context, k *killer, kinds []string, count int) error {
	killing, stop := context.WithCancel(ctx)
	defer stop()
	var killed, running sync.WaitGroup
	killed.Go(func() { k.run(killing) })
	failures := make([]error, len(kinds))
	for i, kind := range kinds {
		running.Go(func() {
			name := fmt.Sprintf("%s%d", chaosPrefix, i)
			if err := (&mover{moves: m, kind: kind, on: i % 2}).run(ctx, name, count); err != nil {
				failures[i] = fmt.Errorf("shoot %s (%s): %w", name, kind, err)
				fmt.Fprintln(os.Stderr, "error:", failures[i])
			}
		})
	}
	running.Wait()
	stop()
	killed.Wait()
	printKills(k.kills)
	m.print()
	if ctx.Err() != nil {
		return m.clean(ctx)
	}
	left, err := m.left(ctx)
	return errors.Join(errors.Join(failures...), err, m.settle(ctx, left))
}

// next says whether there is another move to do.
func (m *moves) next(count int) bool {
	m.results.Lock()
	defer m.results.Unlock()
	m.begun++
	return m.begun <= count
}

func (m *moves) record(r move) {
	m.results.Lock()
	defer m.results.Unlock()
	m.done = append(m.done, r)
	outage := ""
	if r.kind != hibernated {
		outage = fmt.Sprintf(", API not reached for %s", r.outage.Round(time.Second))
	}
	fmt.Fprintf(os.Stderr, "%d: %s to %s after %s%s\n", len(m.done), r.kind, r.to, r.duration.Round(time.Second), outage)
}

// print prints medians and the longest times for each kind.
func (m *moves) print() {
	m.results.Lock()
	defer m.results.Unlock()
	byKind := map[string][]move{}
	for _, r := range m.done {
		byKind[r.kind] = append(byKind[r.kind], r)
	}
	row := func(kind, what string, of func(move) time.Duration) {
		times := make([]time.Duration, 0, len(byKind[kind]))
		for _, r := range byKind[kind] {
			times = append(times, of(r))
		}
		slices.Sort(times)
		fmt.Printf("%-12s %3d moves, %-16s median %-6s longest %s\n", kind, len(times), what, times[len(times)/2].Round(time.Second), times[len(times)-1].Round(time.Second))
	}
	for _, kind := range []string{withoutNodes, withNodes, hibernated, rotating} {
		if len(byKind[kind]) == 0 {
			continue
		}
		row(kind, "time", func(r move) time.Duration { return r.duration })
		if kind != hibernated {
			row(kind, "API not reached", func(r move) time.Duration { return r.outage })
		}
	}
}

// mover moves one shoot.
type mover struct {
	*moves

	kind string
	key  client.ObjectKey
	// on is the index of its seed.
	on      int
	journal journal
	// nodeUIDs are those of its nodes, by name.
	nodeUIDs map[string]string
}

// run creates the shoot, moves it while it is written to, and checks that nothing was lost.
func (m *mover) run(ctx context.Context, name string, count int) error {
	if err := m.create(ctx, name); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var written sync.WaitGroup
	if m.kind != hibernated {
		written.Go(func() { m.journal.run(writing, m.access) })
	}
	var failure error
	for failure == nil && m.next(count) {
		failure = m.move(ctx)
	}
	stop()
	written.Wait()
	if failure != nil {
		return failure
	}
	return m.finish(ctx)
}

// create creates the shoot, and brings it into the state of its kind.
func (m *mover) create(ctx context.Context, name string) error {
	manifest := m.manifest
	if m.kind == withNodes {
		manifest = m.moves.nodes
	}
	shoot, err := shootFrom(manifest, name)
	if err != nil {
		return err
	}
	m.key, shoot.Spec.SeedName = client.ObjectKeyFromObject(shoot), &m.seeds[m.on]
	if err := m.persist(ctx, func() error { return client.IgnoreAlreadyExists(m.garden.Create(ctx, shoot)) }); err != nil {
		return err
	}
	if err := m.until(ctx, kube.ShootHealthy); err != nil {
		return err
	}
	switch m.kind {
	case withNodes:
		m.nodeUIDs, err = m.readNodes(ctx)
		return err
	case hibernated:
		if err := m.persistUntil(ctx, func(ctx context.Context) error { return m.journal.write(ctx, m.access) }); err != nil {
			return err
		}
		return m.hibernate(ctx, true)
	case rotating:
		return m.rotate(ctx, constants.OperationRotateCredentialsStart, corev1beta1.RotationPrepared)
	}
	return nil
}

// move moves the control plane to the other seed.
func (m *mover) move(ctx context.Context) error {
	begin, to := time.Now(), m.seeds[1-m.on]
	m.journal.reset(begin)
	if err := m.persist(ctx, func() error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			shoot := &corev1beta1.Shoot{}
			if err := m.garden.Get(ctx, m.key, shoot); err != nil || ptr.Deref(shoot.Spec.SeedName, "") == to {
				return err
			}
			shoot.Spec.SeedName = &to
			return m.garden.SubResource("binding").Update(ctx, shoot)
		})
	}); err != nil {
		return err
	}
	if err := m.until(ctx, func(shoot *corev1beta1.Shoot) error {
		if shoot != nil && ptr.Deref(shoot.Status.SeedName, "") != to {
			return fmt.Errorf("it is on seed %s: %s", ptr.Deref(shoot.Status.SeedName, ""), kube.ShootOperation(shoot))
		}
		return kube.ShootHealthy(shoot)
	}); err != nil {
		return fmt.Errorf("move to %s: %w", to, err)
	}
	m.on = 1 - m.on
	m.record(move{m.kind, to, time.Since(begin), m.journal.outage(time.Now())})
	if m.nodeUIDs == nil {
		return nil
	}
	now, err := m.readNodes(ctx)
	if err == nil && !maps.Equal(now, m.nodeUIDs) {
		err = fmt.Errorf("nodes were %v and are %v", m.nodeUIDs, now)
	}
	return err
}

// finish wakes the shoot up or ends the rotation, and checks what was written.
func (m *mover) finish(ctx context.Context) error {
	var err error
	switch m.kind {
	case hibernated:
		err = m.hibernate(ctx, false)
	case rotating:
		err = m.rotate(ctx, constants.OperationRotateCredentialsComplete, corev1beta1.RotationCompleted)
	}
	if err != nil {
		return err
	}
	var lost []entry
	if err := m.persistUntil(ctx, func(ctx context.Context) error {
		c, err := m.access(ctx)
		if err != nil {
			return err
		}
		lost, err = m.journal.lost(ctx, c)
		return err
	}); err != nil {
		return err
	}
	if len(lost) > 0 {
		return fmt.Errorf("%d acknowledged writes are lost, the first at %s", len(lost), lost[0].at.Format(time.TimeOnly))
	}
	return nil
}

// access returns a client of the shoot, at its present address.
func (m *mover) access(ctx context.Context) (client.WithWatch, error) { return m.connect(ctx, m.key) }

// until waits for a state of the shoot, again after an interruption of the watch.
func (m *mover) until(ctx context.Context, check func(*corev1beta1.Shoot) error) error {
	return m.persistUntil(ctx, func(ctx context.Context) error { return kube.AwaitShoot(ctx, m.garden, m.key, check, nil) })
}

func (m *mover) persistUntil(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	return m.persist(ctx, func() error { return do(ctx) })
}

func (m *mover) hibernate(ctx context.Context, enabled bool) error {
	if err := m.persist(ctx, func() error {
		return changeShoot(ctx, m.garden, m.key, func(spec *corev1beta1.ShootSpec) { spec.Hibernation = &corev1beta1.Hibernation{Enabled: &enabled} })
	}); err != nil {
		return err
	}
	return m.until(ctx, kube.ShootHealthy)
}

// rotate brings the rotation of all credentials to a phase.
func (m *mover) rotate(ctx context.Context, operation string, phase corev1beta1.CredentialsRotationPhase) error {
	if err := m.persist(ctx, func() error { return requestOperation(ctx, m.garden, m.key, operation) }); err != nil {
		return err
	}
	return m.until(ctx, func(shoot *corev1beta1.Shoot) error { return credentialsRotated(shoot, phase) })
}

func (m *mover) readNodes(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	err := m.persistUntil(ctx, func(ctx context.Context) error {
		c, err := m.access(ctx)
		if err != nil {
			return err
		}
		nodes := &corev1.NodeList{}
		if err := c.List(ctx, nodes); err != nil {
			return err
		}
		for i := range nodes.Items {
			found[nodes.Items[i].Name] = string(nodes.Items[i].UID)
		}
		return nil
	})
	return found, err
}
