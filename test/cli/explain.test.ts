/**
 * Goal: `sluice explain` prints which OpenAI endpoint the gateway uses for a model, and why.
 * Method: the built program on the shipped catalogue, with text and JSON output.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'

const CONFIG = ['--config', join(process.cwd(), 'config/gateway.yaml')]

function explain(...args: string[]): Promise<string> {
  const program = join(process.cwd(), 'dist/main.js')
  return new Promise((resolve) => {
    execFile(process.execPath, [program, 'explain', ...args, ...CONFIG], (_error, out) =>
      resolve(out),
    )
  })
}

void t.test('the line of the dialect names the endpoint', async (t) => {
  t.match(
    await explain('gpt-5.5-pro'),
    'dialect    openai-responses: the model has no chat endpoint',
  )
  t.match(
    await explain('gpt-4o'),
    'dialect    openai-chat: the model supports all features in chat completions',
  )
  t.match(
    await explain('gpt-6-luna'),
    'dialect    openai-chat, with tools openai-responses: chat completions refuses tools for this model while it reasons',
  )
  t.match(await explain('claude-opus-5-5'), 'dialect    anthropic: set in the configuration')
})

void t.test('the JSON names the endpoint in `wire_format`', async (t) => {
  const answer = JSON.parse(await explain('gpt-6-astra', '--json')) as Record<string, unknown>
  t.match(answer, {
    dialect: 'openai',
    wire_format: { plain: 'openai-chat', with_tools: 'openai-responses' },
  })
  t.match(JSON.parse(await explain('unrouted', '--json')), { route: null, wire_format: null })
})
