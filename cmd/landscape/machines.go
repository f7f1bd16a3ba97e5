package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gardener.cloud/gardener/landscape/containers"
)

func (c *cli) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stop MACHINE...",
		Short: "Stop machines as a power cut does; their data stays",
		Long: `Examples:
  landscape stop runtime-2              # the zone of a machine is lost, if it has no other one: see the zones with "landscape status"
  landscape stop runtime-2 runtime-5

Machines stay off until "landscape start" or "landscape up". The first machine of a cluster has its control plane.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.open()
			if err != nil {
				return err
			}
			return l.StopMachines(cmd.Context(), c.printer(), args...)
		},
	}
}

func (c *cli) startCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "start MACHINE...",
		Short: "Start machines that were stopped",
		Long: `Examples:
  landscape start runtime-2
  landscape start runtime-2 runtime-5

It returns when they have booted. Their nodes are ready a moment later.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.open()
			if err != nil {
				return err
			}
			return l.StartMachines(cmd.Context(), c.printer(), args...)
		},
	}
}

func (c *cli) shellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shell MACHINE [-- COMMAND...]",
		Short: "Open a shell on a machine, or run a command there",
		Long: `Examples:
  landscape shell runtime-0
  landscape shell runtime-0 -- systemctl status kubelet`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.open()
			if err != nil {
				return err
			}
			client, err := l.Connect(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer client.Close() //nolint:errcheck // nothing is lost
			command := args[1:]
			if len(command) == 0 {
				command = []string{"/bin/bash", "--login"}
			}
			code, err := c.exec(cmd.Context(), client, args[0], command)
			if err != nil {
				return err
			}
			if code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
}

// exec runs a command with the streams of this process, and with a terminal if this process has one.
func (c *cli) exec(ctx context.Context, client *containers.Client, machine string, command []string) (int, error) {
	streams := containers.Streams{In: c.in, Out: c.out, Err: c.errOut}
	file, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // descriptors are small
		return client.Exec(ctx, machine, streams, command...)
	}
	terminal := int(file.Fd()) //nolint:gosec // descriptors are small
	before, err := term.MakeRaw(terminal)
	if err != nil {
		return 0, err
	}
	defer term.Restore(terminal, before) //nolint:errcheck // there is no way to report it
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	resized <- syscall.SIGWINCH // This sends the initial size.
	sizes := make(chan containers.Size)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case <-resized:
				width, height, err := term.GetSize(terminal)
				if err != nil {
					continue
				}
				select {
				case sizes <- containers.Size{Width: uint32(width), Height: uint32(height)}: //nolint:gosec // no terminal is that large
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	streams.Terminal, streams.Resize = true, sizes
	return client.Exec(ctx, machine, streams, command...)
}

func (c *cli) logsCommand() *cobra.Command {
	var follow bool
	var lines int
	cmd := &cobra.Command{
		Use:   "logs NAME [UNIT]",
		Short: "Show the log of a machine's systemd unit, or of a service of the landscape",
		Long: `Examples:
  landscape logs runtime-0                # the machine's whole journal
  landscape logs runtime-0 kubelet -f
  landscape logs registry                 # also: resolver, containerd`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.open()
			if err != nil {
				return err
			}
			if file, ok := l.ServiceLog(args[0]); ok {
				if len(args) > 1 {
					return fmt.Errorf("%s is one process and has no units", args[0])
				}
				return tail(cmd.Context(), c.out, file, lines, follow)
			}
			client, err := l.Connect(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer client.Close() //nolint:errcheck // nothing is lost
			command := []string{"journalctl", "--no-pager", fmt.Sprintf("--lines=%d", lines)}
			if follow {
				command = append(command, "--follow")
			}
			if len(args) > 1 {
				command = append(command, "--unit="+args[1])
			}
			code, err := client.Exec(cmd.Context(), args[0], containers.Streams{Out: c.out, Err: c.errOut}, command...)
			if follow && cmd.Context().Err() != nil {
				return nil // Ctrl-C is how following ends.
			}
			if err == nil && code != 0 {
				err = exitCode(code)
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "also print new lines as they are logged")
	cmd.Flags().IntVarP(&lines, "lines", "n", 100, "how many of the last lines to show")
	return cmd
}
