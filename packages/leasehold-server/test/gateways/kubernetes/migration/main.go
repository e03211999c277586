// The program of docs/migration.md, as one candidate:
//
//	migration SERVER IDENTITY
//
// It leads, prints so, and stops.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	hostname := os.Args[2]
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: os.Args[1]})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	schedule := func(context.Context) {
		fmt.Println(hostname, "leads")
		cancel()
	}
	stop := func() { fmt.Println(hostname, "stopped") }

	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "scheduler", Namespace: "default"},
		Client:     clientset.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: hostname},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: schedule, OnStoppedLeading: stop},
	})
}
