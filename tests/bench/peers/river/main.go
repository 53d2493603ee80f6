// River as a peer of the benchmark of job queues: orders on standard input, answers on standard output, one JSON
// object a line. The argument is the URL of a database of its own.
//
// {"fill": n} leaves n no-op jobs waiting, with "later" for the next day; {"drain": n} works them until the last is
// recorded as completed; {"starts": n} inserts n jobs into the idle queue, one after another, and times each start.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	// What River's own benchmark (`river bench`) sets for the most throughput; the documents' page on benchmarks names
	// the number of workers.
	fetchCooldown     = 2 * time.Millisecond
	fetchPollInterval = 20 * time.Millisecond
	maxWorkers        = 2_000
	insertBatch       = 5_000
	// The shortest that a client takes, for the time to a start.
	startCooldown = time.Millisecond
	connections   = 20
	// Between a start and the next job.
	idle     = 10 * time.Millisecond
	patience = 5 * time.Second
)

type order struct {
	Fill   int  `json:"fill"`
	Later  bool `json:"later"`
	Drain  int  `json:"drain"`
	Starts int  `json:"starts"`
}

type noop struct{}

func (noop) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[noop]
	// Of timed starts; nil while a queue is drained.
	started chan time.Time
}

func (w *worker) Work(context.Context, *river.Job[noop]) error {
	if w.started != nil {
		w.started <- time.Now()
	}
	return nil
}

type peer struct {
	pool *pgxpool.Pool
}

func (p *peer) client(w *worker, cooldown time.Duration) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	return river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		FetchCooldown:     cooldown,
		FetchPollInterval: fetchPollInterval,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers}},
		Workers:           workers,
	})
}

func (p *peer) fill(ctx context.Context, jobs int, later bool) (any, error) {
	client, err := p.client(&worker{}, fetchCooldown)
	if err != nil {
		return nil, err
	}
	options := &river.InsertOpts{}
	if later {
		options.ScheduledAt = time.Now().Add(24 * time.Hour)
	}
	for left := jobs; left > 0; left -= insertBatch {
		batch := make([]river.InsertManyParams, min(left, insertBatch))
		for i := range batch {
			batch[i] = river.InsertManyParams{Args: noop{}, InsertOpts: options}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return nil, err
		}
	}
	return map[string]int{"filled": jobs}, nil
}

// From before the client starts to the event that the last job's completion is recorded.
func (p *peer) drain(ctx context.Context, jobs int) (any, error) {
	client, err := p.client(&worker{}, fetchCooldown)
	if err != nil {
		return nil, err
	}
	// As many as there are jobs: an event that finds no room is dropped.
	events, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs,
		Kinds:    []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed},
	})
	defer unsubscribe()
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	for range jobs {
		if event := <-events; event.Kind != river.EventKindJobCompleted {
			return nil, errors.New("a job failed")
		}
	}
	seconds := time.Since(began).Seconds()
	return map[string]float64{"seconds": seconds}, client.Stop(ctx)
}

func (p *peer) starts(ctx context.Context, jobs int) (any, error) {
	started := make(chan time.Time, 1)
	client, err := p.client(&worker{started: started}, startCooldown)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	took := make([]float64, 0, jobs)
	for range jobs {
		time.Sleep(idle)
		if _, err := client.Insert(ctx, noop{}, nil); err != nil {
			return nil, err
		}
		committed := time.Now()
		select {
		case start := <-started:
			took = append(took, max(0, start.Sub(committed).Seconds()*1000))
		case <-time.After(patience):
			return nil, errors.New("a job did not start")
		}
	}
	return map[string][]float64{"milliseconds": took}, client.Stop(ctx)
}

func (p *peer) do(ctx context.Context, given order) (any, error) {
	switch {
	case given.Fill > 0:
		return p.fill(ctx, given.Fill, given.Later)
	case given.Drain > 0:
		return p.drain(ctx, given.Drain)
	case given.Starts > 0:
		return p.starts(ctx, given.Starts)
	}
	return nil, errors.New("an unknown order")
}

// Every connection stands before anything is timed.
func open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = connections
	config.MinIdleConns = connections / 2
	return pgxpool.NewWithConfig(ctx, config)
}

func versions() []string {
	said := []string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/riverqueue/river" {
				said = append(said, "River "+module.Version[1:])
			}
		}
	}
	return append(said, "Go "+runtime.Version()[2:])
}

func run(ctx context.Context, url string) error {
	pool, err := open(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	output := json.NewEncoder(os.Stdout)
	if err := output.Encode(map[string][]string{"versions": versions()}); err != nil {
		return err
	}
	peer := &peer{pool}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var given order
		if err := json.Unmarshal(input.Bytes(), &given); err != nil {
			return err
		}
		answer, err := peer.do(ctx, given)
		if err != nil {
			return err
		}
		if err := output.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: river URL")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}
