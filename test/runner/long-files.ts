/**
 * The test files of the long suite, by a part of their path, and the sources whose change runs them: what a
 * run of the whole suite leaves out of them is run by `npm run test:long`. `.ci/run` runs those of changed
 * sources.
 */
import { execFileSync } from 'node:child_process'

const TRANSLATION = ['src/formats/', 'src/gateway/streams/', 'test/transcripts/']

/** A file that uses `test/helpers/long-suite.ts` has a row; `architecture/long-suite` checks it. */
export const LONG_FILES: Readonly<Record<string, readonly string[]>> = {
  'test/properties/splits.test': TRANSLATION,
  'test/properties/truncation.test': TRANSLATION,
  'test/properties/corruption.test': TRANSLATION,
  'test/properties/client-formats/': TRANSLATION,
  'test/formats/openai-chat/properties.test': ['src/formats/openai-chat/', 'src/formats/chat/'],
  'test/fuzz/': ['src/formats/'],
  'test/conformance/recordings/': ['src/formats/', 'src/emulator/'],
  'test/conformance/gemini-replies.test': ['src/formats/', 'src/emulator/'],
  'test/hostile/stalls.test': ['src/formats/', 'src/gateway/phases/'],
  'test/config/fuzz.test': ['src/config/'],
  'test/accounts/workload-identity/': ['src/accounts/'],
  'test/dashboard/admin/': ['src/dashboard/'],
  'test/dashboard/api/': ['src/dashboard/', 'src/store/'],
  'test/dashboard/browser/': ['src/dashboard/web/'],
  'test/faults/clients/slow-clients.test': ['src/http/'],
  'test/gateway/platforms/identities.test': ['src/gateway/upstreams/'],
  'test/grafana/alerts.test': ['grafana/', 'src/observe/'],
  'test/outage/known-keys.test': ['src/store/', 'src/process/'],
  'test/policy/': ['src/policy/'],
  'test/process/gateway/overload.test': ['src/gateway/overload.ts', 'src/process/'],
  'test/store/size/': ['src/store/'],
  'test/store/upgrade/names.test': ['src/store/'],
}

/** The paths that differ from where this branch left `main`, or on `main` from the last commit. */
function changedPaths(): readonly string[] {
  const git = (...args: readonly string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const head = git('rev-parse', 'HEAD')
  const left = git('merge-base', 'HEAD', 'main')
  return git('diff', '--name-only', left === head ? 'HEAD~1' : left).split('\n')
}

/** Of `files`, those of the long suite; with `onlyChanged` those whose sources have changed. */
export function longFiles(files: readonly string[], onlyChanged: boolean): string[] {
  const changed = onlyChanged ? changedPaths() : []
  const parts = Object.entries(LONG_FILES)
    .filter(([test, sources]) => {
      return !onlyChanged || changed.some((path) => [test, ...sources].some((part) => path.includes(part)))
    })
    .map(([test]) => test)
  return files.filter((file) => parts.some((part) => file.includes(part)))
}
