package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runWrites writes objects into a cluster, one after another, and prints the longest time without a write. In the end it checks that all
// acknowledged writes are kept. The cluster is upgraded or killed meanwhile, by other means.
func runWrites(ctx context.Context, flags *flag.FlagSet, args []string) error {
	file := flags.String("kubeconfig", "", "of the cluster")
	duration := flags.Duration("duration", time.Minute, "how long to write")
	pause := flags.Duration("pause", 100*time.Millisecond, "the time between two writes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *file)
	if err != nil {
		return err
	}
	config.QPS, config.Timeout = -1, 10*time.Second
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	acknowledged, outage, failures := write(ctx, c, *duration, *pause)
	lost, err := missing(ctx, c, acknowledged)
	fmt.Printf("%-32s %d\n%-32s %d\n%-32s %s\n%-32s %d\n", "writes acknowledged", len(acknowledged), "writes failed", failures,
		"longest time without a write", outage.Round(time.Millisecond), "acknowledged writes lost", len(lost))
	if len(lost) > 0 {
		err = errors.Join(err, fmt.Errorf("lost: %v", lost))
	}
	return err
}

// write writes for some time. It returns the names of acknowledged objects, and the longest time between two acknowledgements.
func write(ctx context.Context, c client.Client, duration, pause time.Duration) (acknowledged []string, outage time.Duration, failures int) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	run, begin := time.Now().Unix(), time.Now()
	last := begin
	for i := 0; time.Since(begin) < duration && ctx.Err() == nil; i++ {
		name := fmt.Sprintf("write-%d-%d", run, i)
		err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}})
		if err != nil {
			failures++
			fmt.Printf("%8s %v\n", time.Since(begin).Round(time.Millisecond), err)
		} else {
			acknowledged = append(acknowledged, name)
			outage, last = max(outage, time.Since(last)), time.Now()
		}
		<-ticker.C
	}
	return acknowledged, max(outage, time.Since(last)), failures
}

// missing returns the names that are not in the cluster.
func missing(ctx context.Context, c client.Client, names []string) (lost []string, err error) {
	for _, name := range names {
		err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			lost = append(lost, name)
		} else if err != nil {
			return lost, err
		}
	}
	return lost, nil
}
