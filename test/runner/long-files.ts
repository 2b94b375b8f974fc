/**
 * The test files of the long suite, by a part of their path, and the sources whose change runs them: what a
 * run of the whole suite leaves out of them is run by `npm run test:long`. `.ci/run` runs those of changed
 * sources.
 */
import { changedPaths } from './repository-files.js'

/** Everything that ESLint or Prettier reads. */
const WRITTEN = [
  ...['src/', 'test/', 'bench/', 'docs/', 'examples/', 'grafana/', 'scripts/', 'deploy/', 'config/'],
  ...['.github/', 'eslint.config.js', 'package.json', 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'],
]
const BATCHES = ['src/gateway/batches/', 'src/policy/', 'src/store/']
const TRANSLATION = ['src/formats/', 'src/gateway/streams/', 'test/transcripts/']

/** A file that uses `test/helpers/long-suite.ts` has a row; `architecture/long-suite` checks it. */
export const LONG_FILES: Readonly<Record<string, readonly string[]>> = {
  'test/gateway/generation/model-list.test': ['src/gateway/models/', 'src/store/'],
  'test/gateway/attempts/raise-reservation.test': ['src/gateway/', 'src/store/'],
  'test/gateway/report/charged-and-billed.test': ['src/gateway/charges/', 'src/store/'],
  'test/conformance/presets.test': ['src/config/presets.ts', 'src/formats/'],
  'test/conformance/endpoint-table.test': ['src/formats/', 'src/gateway/'],
  'test/examples/codecs.test': ['src/formats/', 'package.json'],
  'test/architecture/lint.test': WRITTEN,
  'test/architecture/regexes.test': ['src/'],
  'test/properties/splits.test': TRANSLATION,
  'test/properties/truncation.test': TRANSLATION,
  'test/properties/roundtrip.test': TRANSLATION,
  'test/properties/prefix.test': TRANSLATION,
  'test/properties/whole-and-stream.test': TRANSLATION,
  'test/properties/corruption.test': TRANSLATION,
  'test/properties/client-formats/': TRANSLATION,
  'test/formats/anthropic/properties.test': ['src/formats/'],
  'test/formats/gemini/properties.test': ['src/formats/'],
  'test/formats/openai-chat/properties.test': ['src/formats/openai-chat/', 'src/formats/chat/'],
  'test/fuzz/': ['src/formats/'],
  'test/conformance/recordings/': ['src/formats/', 'src/emulator/'],
  'test/conformance/pairs/': ['src/formats/', 'src/gateway/streams/', 'src/emulator/'],
  'test/conformance/clients/ai-sdk-native-formats.test': ['src/formats/', 'src/emulator/'],
  'test/conformance/requests/gemini-requests.test': ['src/formats/', 'src/emulator/'],
  'test/conformance/requests/messages-requests.test': ['src/formats/', 'src/emulator/'],
  'test/conformance/gemini-replies.test': ['src/formats/', 'src/emulator/'],
  'test/gateway/streams/content-types.test': TRANSLATION,
  'test/gateway/upstreams/connection-pool.test': ['src/gateway/upstreams/'],
  'test/gateway/workload-identity.test': ['src/accounts/', 'src/process/workload-identities.ts'],
  'test/native/': ['src/gateway/native/', 'src/store/'],
  'test/gateway/batches/': BATCHES,
  'test/gateway/attempts/drained-reply.test': ['src/gateway/attempts/', 'src/gateway/drained-replies.ts'],
  'test/gateway/attempts/hedging.test': ['src/gateway/attempts/'],
  'test/hostile/gemini-client.test': ['src/formats/', 'src/gateway/phases/'],
  'test/hostile/limits.test': ['src/formats/', 'src/gateway/phases/'],
  'test/hostile/messages-client.test': ['src/formats/', 'src/gateway/phases/'],
  'test/hostile/responses-client.test': ['src/formats/', 'src/gateway/phases/'],
  'test/hostile/memory.test': ['src/formats/', 'src/gateway/'],
  'test/hostile/mixed-load.test': ['src/formats/', 'src/gateway/', 'src/http/'],
  'test/hostile/replies': ['src/formats/', 'src/gateway/streams/'],
  'test/hostile/unread.test': ['src/http/', 'src/gateway/streams/'],
  'test/limits/': ['src/limits/', 'src/ledger/', 'src/store/'],
  'test/hostile/stalls.test': ['src/formats/', 'src/gateway/phases/'],
  'test/http/cors.test': ['src/http/', 'src/dashboard/web/'],
  'test/config/fuzz.test': ['src/config/'],
  'test/accounts/changes/': ['src/accounts/', 'src/store/'],
  'test/accounts/workload-identity/': ['src/accounts/'],
  'test/store/archive/archived-ledger.test': ['src/store/'],
  'test/store/archive/copier.test': ['src/store/'],
  'test/store/archive/corrections.test': ['src/store/'],
  'test/store/archive/interrupted.test': ['src/store/'],
  'test/store/archive/rights.test': ['src/store/archive/'],
  'test/store/archive/verify.test': ['src/store/archive/'],
  'test/store/archive/write-batch.test': ['src/store/'],
  'test/cli/apply-token.test': ['src/cli/apply/'],
  'test/cli/usage.test': ['src/cli/', 'src/store/'],
  'test/cli/file-access.test': ['src/cli/', 'src/base/'],
  'test/cli/purged-names.test': ['src/cli/', 'src/store/'],
  'test/cli/store.test': ['src/cli/', 'src/store/'],
  'test/cli/check-limits.test': ['src/cli/', 'src/accounts/', 'src/store/'],
  'test/cli/connect/undo.test': ['src/cli/connect/', 'src/config/client-settings.ts'],
  'test/cli/doctor/vendor-words.test': ['src/cli/doctor/'],
  'test/cli/import/litellm.test': ['src/cli/import/'],
  'test/cli/rehearse/rehearse.test': ['src/cli/rehearse/'],
  'test/control/admin/': ['src/control/'],
  'test/control/dashboard/api/': ['src/control/', 'src/store/'],
  'test/control/dashboard/security-headers.test': ['src/control/', 'src/http/'],
  'test/dashboard/browser/': ['src/dashboard/web/', 'src/control/dashboard/'],
  'test/control/doors/faults-at-': ['src/control/', 'src/accounts/changes/', 'src/store/'],
  'test/control/login/': ['src/control/login/', 'src/accounts/logins/', 'src/store/'],
  'test/control/sign-in/': ['src/control/', 'src/accounts/', 'src/store/'],
  'test/deploy/archive-smoke.test': ['src/store/archive/', 'deploy/', 'config/gateway.redis.yaml'],
  'test/deploy/load-balancers.test': ['deploy/', 'bench/processes/load-balancer.ts', 'src/http/'],
  'test/deploy/package.test': ['package.json', 'package-lock.json', 'scripts/', 'src/config/package-file.ts'],
  'test/docs/tutorial.test': ['docs/tutorial.md', 'src/cli/'],
  'test/docs/snippets.test': ['docs/', 'README.md', 'CONTRIBUTING.md', 'examples/', 'src/cli/'],
  'test/examples/examples.test': ['examples/'],
  'test/examples/live-swap.test': ['examples/live-swap/', 'src/config/generations/'],
  'test/faults/clients/slow-clients.test': ['src/http/'],
  'test/gateway/dimensions/': ['src/limits/', 'src/gateway/dimensions/', 'src/store/redis/'],
  'test/gateway/phases/compact.test': ['src/gateway/phases/', 'src/formats/openai-responses/'],
  'test/gateway/responses-socket/': ['src/gateway/responses-socket/'],
  'test/gateway/platforms/': ['src/gateway/upstreams/', 'src/formats/'],
  'test/grafana/alerts.test': ['grafana/', 'src/observe/'],
  'test/grafana/phases.test': ['grafana/', 'src/observe/'],
  'test/observe/many-upstreams.test': ['src/observe/'],
  'test/outage/': ['src/store/', 'src/process/'],
  'test/policy/': ['src/policy/'],
  'test/process/broken-file.test': ['src/config/', 'src/cli/', 'src/process/'],
  'test/process/demo.test': ['src/cli/demo.ts'],
  'test/process/faulty-settings.test': ['src/config/', 'src/process/'],
  'test/process/hostile-files.test': ['src/config/', 'src/cli/'],
  'test/process/generations.test': ['src/config/generations/', 'src/process/'],
  'test/process/life-cycle/': ['src/process/'],
  'test/process/gateway/fleet.test': ['src/process/', 'src/config/generations/'],
  'test/process/gateway/memory.test': ['src/gateway/', 'src/http/', 'src/formats/'],
  'test/process/gateway/masked-bodies.test': ['src/policy/', 'src/gateway/phases/judge.ts'],
  'test/process/gateway/overload.test': ['src/gateway/overload.ts', 'src/process/'],
  'test/process/gateway/webhooks.test': ['src/observe/', 'src/process/'],
  'test/store/redis/redis.test': ['src/store/', 'src/accounts/'],
  'test/store/redis/redis-recovery.test': ['src/store/redis/', 'src/accounts/authentication/'],
  'test/store/redis/entry-memory.test': ['src/store/redis/'],
  'test/store/redis/redis-fleet.test': ['src/store/redis/'],
  'test/store/redis/redis-ledger.test': ['src/store/'],
  'test/store/redis/redis-slices.test': ['src/limits/', 'src/store/redis/'],
  'test/store/sqlite/sqlite.test': ['src/store/', 'src/accounts/'],
  'test/store/sqlite/read-only.test': ['src/store/sqlite/'],
  'test/store/sqlite/former-entries.test': ['src/store/sqlite/'],
  'test/store/sqlite/write-ahead-log.test': ['src/store/sqlite/'],
  'test/store/sqlite/sqlite-ledger.test': ['src/store/'],
  'test/store/size/': ['src/store/'],
  'test/store/upgrade/': ['src/store/'],
}

/**
 * Of `files`, those of the long suite; with `onlyChanged` those whose sources have changed, or all if that is
 * not known.
 */
export function longFiles(files: readonly string[], onlyChanged: boolean): string[] {
  const changed = onlyChanged ? changedPaths() : null
  const parts = Object.entries(LONG_FILES)
    .filter(([test, sources]) => {
      return changed?.some((path) => [test, ...sources].some((part) => path.includes(part))) ?? true
    })
    .map(([test]) => test)
  return files.filter((file) => parts.some((part) => file.includes(part)))
}
