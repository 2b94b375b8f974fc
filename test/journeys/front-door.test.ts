/**
 * Goal: the commands of the README and of the tutorial work as printed for a newcomer.
 * Method: a fresh clone with its own `npm ci`, in a network of its own, so that the ports are those of the
 * pages: the demo with its printed `curl` commands, the block for production, the tutorial to the end.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Network, networksMissing } from './containers.js'
import { needing, packagesMissing } from './missing-parts.js'
import { eventually, show, succeeds } from './shell.js'

const skip = needing(networksMissing(), await packagesMissing())

/** The fenced blocks of a page in a language. */
function blocksOf(page: string, language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\`$`, 'gm'))].map(
    ([, text = '']) => text,
  )
}

/** What a newcomer has: a clone in a folder, an empty home, and the programs of the machine. */
interface Newcomer {
  readonly folder: string
  readonly network: Network
  readonly env: NodeJS.ProcessEnv
}

async function clone(t: Test): Promise<Newcomer> {
  const place = mkdtempSync('/var/tmp/sluice-newcomer-')
  t.teardown(() => rmSync(place, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }))
  const folder = join(place, 'sluice')
  await succeeds(t, ['git', 'clone', '--quiet', '--depth', '1', `file://${process.cwd()}`, folder])
  const network = new Network(t)
  await network.open()
  const { PATH, NODE_EXTRA_CA_CERTS } = process.env
  return { folder, network, env: { PATH, NODE_EXTRA_CA_CERTS, HOME: place } }
}

/** Runs commands as one script in the clone and returns what they print. */
function script(t: Test, { folder, network, env }: Newcomer, text: string): Promise<string> {
  writeFileSync(join(folder, '..', 'commands.sh'), text)
  return succeeds(t, network.inside(['bash', '-e', '../commands.sh']), { cwd: folder, env })
}

void t.test('a newcomer', skip, async (t) => {
  const newcomer = await clone(t)
  const { folder, network, env } = newcomer
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  const tutorial = readFileSync(join(folder, 'docs/tutorial.md'), 'utf8')
  const beganMs = performance.now()
  t.match(readme, /^npm ci && npm run demo /m)
  await succeeds(t, ['npm', 'ci', '--prefer-offline'], { cwd: folder })

  await t.test('starts the demo and pastes its commands', async (t) => {
    const demo = network.start(['env', '-C', folder, 'npm', 'run', 'demo'], env)
    await eventually('the demo prints its commands', 120_000, () =>
      Promise.resolve(demo.output().includes('Ctrl-C') ? true : null),
    )
    show(`npm ci && npm run demo: ${((performance.now() - beganMs) / 1000).toFixed(0)} s`)
    const commands = [...demo.output().matchAll(/^\s*(curl (?:.*\\\n)*.*)$/gm)].map(([, text = '']) => text)
    t.ok(commands.length >= 3, 'commands to paste')
    for (const command of commands) {
      t.match(await script(t, newcomer, command), /^(?:\{|data: |event: )/m)
    }
    demo.signal('SIGINT')
    await demo.ended
    t.notMatch(demo.output(), /Error:/)
  })

  await t.test('follows "Run it in production"', async (t) => {
    const block = blocksOf(readme, 'sh').find((text) => text.includes('main.js serve')) ?? ''
    const [serve = '', others = ''] = block.split('# In another terminal')
    t.match(serve, /^npm ci && npm run build$/m)
    // The reader has keys in place of the dots.
    const keyed = serve.replaceAll('=…', '=placeholder')
    const start = keyed.replace('npm ci && npm run build', 'npm run build').replace(/serve\s*$/, 'serve')
    writeFileSync(join(folder, '..', 'serve.sh'), `cd '${folder}'\n${start.replace(/^node/m, 'exec node')}\n`)
    const gateway = network.start(['bash', '-e', join(folder, '..', 'serve.sh')], env)
    const ready = network.inside(['curl', '-sf', '-o', '/dev/null', 'http://127.0.0.1:9464/readyz'])
    const [program = '', ...args] = ready
    await eventually('the gateway is ready', 180_000, () => {
      if (gateway.child.exitCode !== null) throw new Error(gateway.output().slice(-500))
      return Promise.resolve(spawnSync(program, args).status === 0 ? true : null)
    })
    const exported = /^export SLUICE_CONFIG=\S+/m.exec(serve)?.[0] ?? ''
    const out = await script(t, newcomer, `${exported}\n#${others}`)
    t.match(out, /^sk_\w+$/m, 'the key is printed')
    gateway.child.kill('SIGTERM')
    t.equal(await gateway.ended, 0, 'SIGTERM drains')
  })

  await t.test('follows the tutorial', async (t) => {
    writeFileSync(join(folder, 'tutorial.yaml'), blocksOf(tutorial, 'yaml')[0] ?? '')
    const commands = blocksOf(tutorial, 'sh').filter((text) => !text.includes('npm ci'))
    const cleanUp = 'trap "kill \\$gateway \\$first \\$second 2>/dev/null || true; wait" EXIT'
    const out = await script(t, newcomer, [cleanUp, ...commands].join('\n'))
    t.match(out, /valid \(2 upstreams, 2 routes/, 'check accepts the configuration')
    t.match(out, /"object": ?"chat\.completion"/, 'a chat completion')
    t.match(out, /data: \[DONE\]/, 'a stream of another provider, complete')
    t.match(out, /x-sluice-attempts: second:upstream_unreachable, first:ok/, 'the fallback replies')
    t.equal(await succeeds(t, ['git', 'status', '--short'], { cwd: folder }), '', 'nothing is left')
  })
})
