/** Messages of a chat request, one fragment per concept. Data for `docs/reference/dialects.md`. */
import type { RequestGroup } from './concepts.js'
import { ANSWERED, HELLO, PNG, parts, text } from './request-fragments.js'

const PDF = 'JVBERi0xLjQKJeLjz9MKdHJhaWxlcjw8Pj4KJSVFT0YK'

/** In the order of the page. */
export const MESSAGES_GROUP: readonly RequestGroup[] = [
  {
    title: 'Messages',
    concepts: [
      {
        name: 'instructions at the start (`system`, `developer`)',
        members: { messages: [{ role: 'system', content: 'Be brief.' }, HELLO] },
      },
      {
        name: 'instructions later on',
        base: { messages: ANSWERED },
        members: {
          messages: [
            ...ANSWERED.slice(0, 2),
            { role: 'system', content: 'Be brief.' },
            text('And now?'),
          ],
        },
        emulated: { gemini: 'a `<system>` block in its place in a user turn' },
        notes: { anthropic: 'models before 4.8: as for Gemini' },
      },
      {
        name: '`name` of a speaker',
        members: { messages: [{ ...HELLO, name: 'ann' }] },
      },
      {
        name: 'images as data',
        base: parts(),
        members: parts({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }),
      },
      {
        name: 'images by https address',
        base: parts(),
        members: parts({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
      },
      {
        name: '`detail` of an image',
        base: parts({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }),
        members: parts({
          type: 'image_url',
          image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' },
        }),
        notes: { gemini: 'one setting for all images' },
      },
      {
        name: 'PDF files',
        base: parts(),
        members: parts({
          type: 'file',
          file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
        }),
      },
      {
        name: 'files by id',
        base: parts(),
        members: parts({ type: 'file', file: { file_id: 'file-1' } }),
        notes: { anthropic: 'an id means nothing elsewhere' },
      },
      {
        name: 'audio input',
        base: parts(),
        members: parts({
          type: 'input_audio',
          input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' },
        }),
      },
      {
        name: 'an earlier refusal',
        base: { messages: ANSWERED },
        members: {
          messages: [HELLO, { role: 'assistant', content: null, refusal: 'No.' }, text('And now?')],
        },
        emulated: { anthropic: 'as text', gemini: 'as text', 'openai-responses': 'as text' },
      },
    ],
  },
]
