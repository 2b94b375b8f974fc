/** Fragments of chat requests that several concepts use. */
import type { JsonObject } from '../../chat/json.js'

/** A user message. */
export const text = (content: string): JsonObject => ({ role: 'user', content })

/** The shortest user message. */
export const HELLO = text('Hello.')

/** A user message with these content parts after a text. */
export const parts = (...content: JsonObject[]): JsonObject => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, ...content] }],
})

/** A picture of one pixel, base64. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** A JSON Schema. */
export const SCHEMA = {
  type: 'object',
  properties: { colour: { type: 'string' } },
  required: ['colour'],
  additionalProperties: false,
}

/** A function tool with parameters. */
export const FUNCTION: JsonObject = {
  type: 'function',
  function: { name: 'paint', description: 'Paints.', parameters: SCHEMA },
}

/** A function tool without parameters. */
export const OTHER: JsonObject = { type: 'function', function: { name: 'wait' } }

/** Both tools. */
export const TOOLS: JsonObject = { tools: [FUNCTION, OTHER] }

/** A conversation of three messages. */
export const ANSWERED = [HELLO, { role: 'assistant', content: 'Hi.' }, text('And now?')]
