/** Chat templates of Hugging Face models: our own engine for the Jinja that they use. */
export { TemplateError } from './template/errors.ts';
export { ChatTemplate, renderChat } from './template/render.ts';
export type { ChatInput, ChatMessage, RenderedChat } from './template/render.ts';
