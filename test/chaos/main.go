// Command chaos kills processes of a local landscape at random moments while it is used, and checks afterwards that everything matches its
// spec and nothing is left over.
//
//	go run ./test/chaos up -rounds 20          # while a landscape comes up; -up-flags --without-shoot creates no shoot
//	go run ./test/chaos shoots -duration 20m   # while shoots are created, changed and deleted on a running landscape
//	go run ./test/chaos boundaries             # the gardenlet, at each step of the creation and deletion of a shoot
//	go run ./test/chaos garden                 # gardener-operator, at each step of a rotation, the deletion and creation of the garden
//	go run ./test/chaos writes -kubeconfig FILE # writes into a cluster that is killed or upgraded meanwhile
//	go run ./test/chaos upgrade -from REVISION # shoots, while a landscape of the revision is upgraded to this tree, and back
//	go run ./test/chaos moves                  # while control planes move between two seeds
//	go run ./test/chaos nodes                  # everything that happens to a shoot with nodes, while its workload is probed
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/landscape"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

const usage = `Kill processes of a local landscape at random moments while it is used, and check the result.

  chaos up          while a landscape comes up, again and again
  chaos shoots      while shoots are created, changed and deleted
  chaos boundaries  the gardenlet, at each step of the creation and deletion of a shoot
  chaos garden      gardener-operator, at each step of a rotation, the deletion and creation of the garden
  chaos writes      write into a cluster that is killed or upgraded meanwhile
  chaos upgrade     while a landscape is upgraded to this tree, rolled back, and upgraded again
  chaos moves       while control planes move between two seeds
  chaos nodes       everything that happens to a shoot with nodes, while its workload is asked

Flags of a scenario: chaos SCENARIO --help
`

func run(args []string) error {
	if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		fmt.Print(usage)
		return nil
	}
	scenarios := map[string]func(context.Context, *flag.FlagSet, []string) error{
		"up": runUp, "shoots": runShoots, "boundaries": runBoundaries, "garden": runGarden, "writes": runWrites, "nodes": runNodes,
		"upgrade": runUpgrade, "moves": runMoves,
	}
	if len(args) == 0 || scenarios[args[0]] == nil {
		return fmt.Errorf("name a scenario: %s; see --help", strings.Join(slices.Sorted(maps.Keys(scenarios)), ", "))
	}
	if err := landscape.BypassProxy(os.Getenv, os.Setenv); err != nil {
		return err
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // errors of clients are expected when servers are killed
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	context.AfterFunc(ctx, stop) // a third signal also ends the cleanup
	return scenarios[args[0]](ctx, flag.NewFlagSet(args[0], flag.ExitOnError), args[1:])
}

// clients are those of the garden, and of its first seed.
type clients struct{ garden, seed client.WithWatch }

// open returns a landscape that is up, and its clients.
func open(name string) (l *landscape.Landscape, c clients, err error) {
	if l, err = landscape.Open(".landscape", name); err != nil {
		return nil, c, err
	}
	if err := l.CheckKubeconfig(landscape.VirtualGarden); err != nil { // it has the command that brings it up
		return nil, c, err
	}
	if c.garden, err = l.Client(landscape.VirtualGarden); err != nil {
		return nil, c, err
	}
	c.seed, err = l.Client(landscape.RuntimeCluster)
	return l, c, err
}

// newRandom returns a source of random numbers, whose seed allows to repeat a failed round.
func newRandom(seed uint64) *rand.Rand {
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) //nolint:gosec // the clock is after 1970
	}
	fmt.Fprintf(os.Stderr, "random seed %d\n", seed)
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no need for secrecy
}

func printKills(kills map[string]int) {
	var total int
	for _, program := range slices.Sorted(maps.Keys(kills)) {
		fmt.Printf("%-32s %d\n", program, kills[program])
		total += kills[program]
	}
	fmt.Printf("%-32s %d\n", "kills", total)
}
