// Command install-crun installs crun on the node whose directories are mounted below --root, and has its containerd use it as the runtime crun:
//
//	install-crun install --root=/host --directory=/var/bin/containerruntimes
//	install-crun wait
//
// The binary, its libraries and a script that starts it get into the directory, and the runtime into a file in /etc/containerd/conf.d, which
// containerd 2 imports. containerd reads it when it starts, so it is restarted if it runs since before the file was written; containers do not
// end then. The command wait does nothing until it is terminated, for the pod that has installed crun.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// timeout limits an installation: systemd itself gives up the restart of a unit after 90 s by default.
const timeout = 3 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "install-crun:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: install-crun install|wait, for example install-crun install --root=/host")
	}
	i := installation{containerd: systemdUnit("containerd.service")}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&i.source, "source", "/opt/crun", "directory with the binary, and with its libraries in lib")
	flags.StringVar(&i.root, "root", "/", "directory below which the directories of the node are")
	flags.StringVar(&i.directory, "directory", "/var/bin/containerruntimes", "directory on the node for binaries of runtimes")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "install":
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return i.run(ctx)
	case "wait":
		<-ctx.Done()
		return nil
	}
	return fmt.Errorf("unknown command %q: use install or wait", args[0])
}
