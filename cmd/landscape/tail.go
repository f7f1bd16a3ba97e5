package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/fsnotify/fsnotify"
)

// tail writes the last lines of a file and, if follow is set, what is appended to it until ctx is done.
func tail(ctx context.Context, out io.Writer, path string, lines int, follow bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if _, err := out.Write(lastLines(content, lines)); err != nil || !follow {
		return err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close() //nolint:errcheck // nothing is read any more
	if err := watcher.Add(path); err != nil {
		return err
	}
	for {
		if _, err := io.Copy(out, file); err != nil {
			return err
		}
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			return err
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil // Ctrl-C is how following ends.
			}
			return ctx.Err()
		}
	}
}

func lastLines(content []byte, lines int) []byte {
	end := len(bytes.TrimSuffix(content, []byte("\n")))
	for range lines {
		end = bytes.LastIndexByte(content[:end], '\n')
		if end < 0 {
			return content
		}
	}
	return content[min(end+1, len(content)):]
}
