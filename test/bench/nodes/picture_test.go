package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"
	"time"

	"gardener.cloud/gardener/test/golden"
)

func TestDrawing(t *testing.T) {
	at := func(seconds int) time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
	}
	states := []state{
		{at: at(-3), nodes: 1, ready: 1},
		{at: at(1), pods: 60, nodes: 1, ready: 1},
		{at: at(20), pods: 60, running: 15, nodes: 5, ready: 1},
		{at: at(61), pods: 60, running: 60, nodes: 5, ready: 5},
		{at: at(70), nodes: 5, ready: 5},
		{at: at(130), nodes: 1, ready: 1},
	}
	var out bytes.Buffer
	if err := drawing(`60 pods & "5" nodes`, states, []mark{{"pods are created", at(0)}, {"pods are deleted", at(68)}}).SVG(&out); err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	golden.Text(t, "chart.svg", out.String())
}

func TestTick(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{
		8 * time.Second: time.Second, 100 * time.Second: 15 * time.Second, 12 * time.Minute: time.Minute, 2 * time.Hour: 5 * time.Minute,
	} {
		if got := tick(span); got != want {
			t.Errorf("the axis of %s has a line each %s, want %s", span, got, want)
		}
	}
}
