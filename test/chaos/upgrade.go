package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/landscape"
)

// attempts is how often `make up` may fail on one step, as what it needs may be killed at any moment.
const attempts = 3

// sampleShoot is the shoot that each landscape has. It is written to all the time.
var sampleShoot = client.ObjectKey{Namespace: "garden-local", Name: "local"}

// runUpgrade brings up a landscape of another revision, and upgrades it to this tree. While its users create, change and delete shoots and processes
// are killed, it is rolled back to the revision, and upgraded again. Writes into the sample shoot are counted all the time.
func runUpgrade(ctx context.Context, flags *flag.FlagSet, args []string) error {
	d := disturbanceFlags(flags)
	from := flags.String("from", "", "the revision of this repository to upgrade from, such as a tag")
	version := flags.String("from-version", "", "version that the revision is built as, such as v1.149.0; the garden is upgraded before its gardenlet "+
		"then, is used so, and nothing is rolled back, as a garden does not go back to another minor version")
	duration := flags.Duration("duration", 5*time.Minute, "how long the garden is used with the former gardenlet, with -from-version")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *from == "" {
		return errors.New("-from must name a revision")
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	other, err := os.MkdirTemp("", "gardener-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(other) //nolint:errcheck // a temporary directory
	if err := command(ctx, "git", "worktree", "add", "--detach", other, *from); err != nil {
		return err
	}
	defer func() {
		if err := command(context.WithoutCancel(ctx), "git", "worktree", "remove", "--force", other); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
	}()
	if *version != "" {
		if err := os.WriteFile(filepath.Join(other, "VERSION"), []byte(*version+"\n"), 0o644); err != nil {
			return err
		}
	}
	step := func(ctx context.Context, name, checkout string, flags ...string) (err error) {
		start := time.Now()
		for attempt := range attempts {
			if err = makeUp(ctx, checkout, here, *d.landscape, flags...); err == nil {
				fmt.Printf("%-32s %s, %d failed\n", name, time.Since(start).Round(time.Second), attempt)
				return nil
			}
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			if ctx.Err() != nil {
				break
			}
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := step(ctx, "up from "+*from, other); err != nil {
		return err
	}
	shoot, err := sample(ctx, *d.landscape)
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var written error
	var running sync.WaitGroup
	running.Go(func() { written = writes(ctx, writing, shoot, 250*time.Millisecond) })
	if *version != "" {
		if err = step(ctx, "upgrade without gardenlet", here, "--keep-gardenlets"); err == nil {
			err = d.run(ctx, lasting(*duration))
		}
		if err == nil {
			err = step(ctx, "upgrade of gardenlet", here)
		}
	} else if err = step(ctx, "upgrade", here); err == nil {
		err = d.run(ctx, func(ctx context.Context) error {
			if err := step(ctx, "rollback under chaos", other); err != nil {
				return err
			}
			return step(ctx, "upgrade under chaos", here)
		})
	}
	stop()
	running.Wait()
	return errors.Join(err, written)
}

// makeUp runs `make up` in a checkout, for a landscape of this one.
func makeUp(ctx context.Context, checkout, here, name string, flags ...string) error {
	flags = append(flags, "--dir", filepath.Join(here, ".landscape"))
	return command(ctx, "make", "-C", checkout, "up", "NAME="+name, "UPFLAGS="+strings.Join(flags, " "))
}

// command runs a command. Its output is part of the error.
func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

// sample returns a client of the sample shoot.
func sample(ctx context.Context, name string) (client.Client, error) {
	l, _, err := open(name)
	if err != nil {
		return nil, err
	}
	file, err := l.ShootKubeconfig(ctx, landscape.Access{Shoot: sampleShoot, Expiration: 12 * time.Hour})
	if err != nil {
		return nil, err
	}
	return writer(file)
}
