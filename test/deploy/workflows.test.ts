/**
 * Goal: the workflows of the repository's host call what exists, with pinned actions and few rights, and a
 * release has the version and the notes of its tag, and a list of what a running gateway contains.
 * Method: the parsed files, whose shell is checked for syntax; the scripts that they call run. `actionlint`,
 * if it is installed, checks the rest.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import * as z from 'zod'

const FOLDER = '.github/workflows'
const FILES = readdirSync(FOLDER)

const Permissions = z.record(z.string(), z.enum(['read', 'write', 'none']))

const Workflow = z.looseObject({
  permissions: Permissions,
  jobs: z.record(
    z.string(),
    z.looseObject({
      needs: z.string().or(z.array(z.string())).optional(),
      uses: z.string().optional(),
      permissions: Permissions.optional(),
      'timeout-minutes': z.number().optional(),
      steps: z.array(z.looseObject({ uses: z.string().optional(), run: z.string().optional() })).optional(),
    }),
  ),
})

const Manifest = z.looseObject({
  version: z.string(),
  scripts: z.record(z.string(), z.string()),
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
})

const MANIFEST = Manifest.parse(JSON.parse(readFileSync('package.json', 'utf8')))

/** Commands of npm itself that the workflows may call. */
const NPM = ['audit', 'ci', 'cit', 'pack', 'pkg', 'publish', 'run']

for (const file of FILES) {
  void t.test(file, (t) => {
    const text = readFileSync(join(FOLDER, file), 'utf8')
    const { permissions, jobs } = Workflow.parse(parse(text))
    t.same(permissions, { contents: 'read' }, 'a job that needs more rights names them')
    t.notMatch(
      text,
      /secrets\.|pull_request_target/,
      'no long-lived secret, no rights for a foreign pull request',
    )
    for (const [name, job] of Object.entries(jobs)) {
      for (const needed of [job.needs ?? []].flat()) t.ok(Object.hasOwn(jobs, needed), `${name}: ${needed}`)
      if (job.uses !== undefined) t.ok(existsSync(job.uses), job.uses)
      else t.ok((job['timeout-minutes'] ?? 0) > 0, `${name} has a limit`)
      for (const { run, uses } of job.steps ?? []) {
        if (run !== undefined) checkShell(t, run)
        if (uses !== undefined) t.ok(text.includes(`${uses} # v`), `${uses} names its version`)
        if (uses !== undefined) t.match(uses, /@[0-9a-f]{40}$/, 'an action is named by its commit')
      }
    }
    t.end()
  })
}

/** The shell is valid, and what it calls of the repository exists. */
function checkShell(t: Test, run: string): void {
  const script = run.replaceAll(/\$\{\{.*?\}\}/g, 'x')
  t.equal(spawnSync('bash', ['-n'], { input: script }).status, 0, script)
  for (const [, command = '', name = ''] of script.matchAll(/\bnpm ([a-z]+)(?: ([\w:]+))?/g)) {
    t.ok(NPM.includes(command), `npm ${command}`)
    if (command === 'run') t.ok(Object.hasOwn(MANIFEST.scripts, name), `npm run ${name}`)
  }
  for (const [path] of script.matchAll(/\b(?:scripts|deploy)\/[\w./-]+/g)) t.ok(existsSync(path), path)
}

void t.test('a change runs the long form of what it touches, and a day all of it', (t) => {
  const { jobs } = Workflow.parse(parse(readFileSync(join(FOLDER, 'test.yml'), 'utf8')))
  const commands = (name: string) => jobs[name]?.steps?.map(({ run }) => run)
  t.match(commands('suite')?.slice(-2), ['npm cit', 'node build/test/run.js --long --changed'])
  t.match(jobs['long'], { if: "github.event_name == 'schedule'", env: { SLUICE_LONG: '1' } })
  t.equal(commands('long')?.at(-1), 'npm cit')
  t.end()
})

void t.test('updates come weekly, for everything that is named by version', (t) => {
  const Updates = z.object({
    version: z.literal(2),
    updates: z.array(
      z.looseObject({
        'package-ecosystem': z.string(),
        schedule: z.looseObject({ interval: z.literal('weekly') }),
      }),
    ),
  })
  const { updates } = Updates.parse(parse(readFileSync('.github/dependabot.yml', 'utf8')))
  t.same(
    updates.map((each) => each['package-ecosystem']),
    ['npm', 'docker', 'docker-compose', 'github-actions'],
  )
  t.end()
})

void t.test('a release has the version of its tag, and the notes of its section', (t) => {
  const folder = t.testdir({})
  for (const path of ['package.json', 'package-lock.json', 'deploy/helm/sluice/Chart.yaml']) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    cpSync(path, join(folder, path))
  }
  const { version } = MANIFEST
  const write = (text: string): void => writeFileSync(join(folder, 'CHANGELOG.md'), text)
  const check = (tag: string) => {
    const script = resolve('scripts/check-release.mjs')
    return spawnSync(process.execPath, [script, tag], { cwd: folder, encoding: 'utf8' })
  }
  const head = '# Changelog\n\n## [Unreleased]\n\n- Later.\n\n'
  write(
    `${head}## [${version}] - 2026-12-01\n\n- A change.\n\n### Fixed\n\n- Another.\n\n## [0.0.1] - 2026-01-01\n\n- Old.\n`,
  )
  t.match(check(`v${version}`), { status: 0, stdout: '- A change.\n\n### Fixed\n\n- Another.\n' })
  t.match(check('v9.9.9'), { status: 1, stdout: '', stderr: /package\.json is .*, not 9\.9\.9/ })
  t.match(check('main'), { status: 1, stderr: /the tag is main \(it must be vX\.Y\.Z\)/ })
  write(`${head}## [${version}] - 2026-12-01\n\n## [0.0.1] - 2026-01-01\n\n- Old.\n`)
  t.match(check(`v${version}`), { status: 1, stderr: /CHANGELOG\.md has no section/ })
  t.end()
})

void t.test('what names the version of this release names that of the package', (t) => {
  const newest = /^## \[(\d[^\]]*)\] - /m.exec(readFileSync('CHANGELOG.md', 'utf8'))?.[1]
  const chart: unknown = parse(readFileSync('deploy/helm/sluice/Chart.yaml', 'utf8'))
  const guide = readFileSync('docs/how-to/deploy-on-kubernetes.md', 'utf8')
  const images = [...guide.matchAll(/sluice(?::|, tag: )(\d+\.\d+\.\d+)/g)].map(([, version]) => version)
  const { version } = MANIFEST
  t.equal(newest, version, 'the newest section of the changelog')
  t.match(chart, { version, appVersion: version })
  t.ok(images.length >= 2)
  t.same([...new Set(images)], [version], 'the images of the guide')
  t.match(readFileSync('docs/reference/openapi.yaml', 'utf8'), `\n  version: ${version}\n`)
  t.end()
})

void t.test('the list of components has what a running gateway loads, and no more', (t) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/write-sbom.mjs'], {
    encoding: 'utf8',
    maxBuffer: 64e6,
  })
  t.equal(status, 0, stderr)
  const Bom = z.looseObject({
    bomFormat: z.literal('CycloneDX'),
    components: z.array(z.looseObject({ name: z.string(), purl: z.string(), version: z.string() })),
  })
  const Lock = z.object({ packages: z.record(z.string(), z.looseObject({ dev: z.boolean().optional() })) })
  const { packages } = Lock.parse(JSON.parse(readFileSync('package-lock.json', 'utf8')))
  const installed = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true)
  const names = Bom.parse(JSON.parse(stdout)).components.map(({ name }) => name)
  t.same(
    Object.keys(MANIFEST.dependencies).filter((name) => !names.includes(name)),
    [],
    'all dependencies',
  )
  t.ok(names.length > 100 && names.length <= installed.length, `${names.length} of ${installed.length}`)
  for (const name of ['tap', 'eslint', 'vite', 'typescript']) t.notOk(names.includes(name), name)
  t.end()
})

const lint = spawnSync('actionlint', ['-version']).status === 0
void t.test('actionlint', { skip: lint ? false : 'actionlint is not installed' }, (t) => {
  const { status, stdout } = spawnSync('actionlint', ['-color=false'], { encoding: 'utf8' })
  t.equal(status, 0, stdout)
  t.end()
})
