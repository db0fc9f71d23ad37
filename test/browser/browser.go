// Package browser starts the browser of tests. Only tests import it.
package browser

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"pelt/internal/testenv"
)

// startLimit is how long Chromium may take to start: it has only the processor time
// that the rest of the machine leaves.
const startLimit = 5 * time.Minute

// Start starts one headless Chromium, which ends with the test.
func Start(t testing.TB) context.Context {
	t.Helper()
	testenv.Tool(t, "chromium")
	allocator, stop := chromedp.NewExecAllocator(t.Context(), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(startLimit),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(closeBrowser) // waits for the process, so that its directory can go
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}
