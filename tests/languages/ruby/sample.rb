# frozen_string_literal: true

require "set"
require_relative "bell/tower"

module Bells
  autoload :Rope, "bells/rope"

  VERSION = "1.2"

  # A bell that can be rung.
  class Bell < Foundry::Casting
    include Comparable
    extend Forwardable, Bells::Tuning

    NOTES = %w[c d e].freeze
    Stroke = Struct.new(:hour, :force) do
      def loud?
        force > 3
      end
    end

    attr_accessor :note, :weight
    attr_reader :strokes

    def initialize(note, weight: 10)
      super()
      @note = note
      @strokes = Set.new
    end

    def self.cast(note)
      new(note).tap { |bell| bell.cool(hours: 2) }
    end

    class << self
      def heaviest(bells) = bells.max_by(&:weight)
    end

    def <=>(other)
      weight <=> other.weight
    end

    def note=(value)
      @note = value.to_s
    end

    define_method(:ring) { |times| times.times { strike } }
    alias_method :toll, :ring
    alias peal ring

    private def strike
      strokes << Stroke.new(Time.now.hour, 2)
    end
  end

  class Cracked < Bell; end
end

def Bells.all
  ObjectSpace.each_object(Bells::Bell).to_a
end
